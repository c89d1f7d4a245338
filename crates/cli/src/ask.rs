//! Questions to whoever sits there.

use std::io::BufRead;

use crate::output::Output;

/// Whether the answer is yes. Anything else is no, and so is the end of the input.
pub(crate) fn confirm(output: &Output, question: &str) -> bool {
    forget_what_was_typed();
    output.prompt(&format!("{question} [y/N]"));
    matches!(line(output).to_lowercase().as_str(), "y" | "yes")
}

/// Whether exactly this text is the answer.
pub(crate) fn for_text(output: &Output, question: &str, expected: &str) -> bool {
    forget_what_was_typed();
    output.prompt(question);
    line(output) == expected
}

/// What was typed before a question is no answer to it. Where this is no terminal, there is nothing to forget.
fn forget_what_was_typed() {
    let _ = rustix::termios::tcflush(std::io::stdin(), rustix::termios::QueueSelector::IFlush);
}

/// Waits for a line.
pub(crate) fn wait(output: &Output, what: &str) {
    output.prompt(what);
    line(output);
}

fn line(output: &Output) -> String {
    let mut line = String::new();
    match std::io::stdin().lock().read_line(&mut line) {
        Ok(1..) => line.trim().to_owned(),
        // Whoever ends the input has not ended the line.
        Ok(0) | Err(_) => {
            output.note("");
            String::new()
        }
    }
}
