//! Documents named as kubectl names them: `KIND/ID` is `KIND ID`, in every command that takes a kind and an id.

use std::ffi::OsString;

use clap::Command;

/// The places of the words that are neither flags nor their values: the command first, then its own arguments.
pub(crate) fn positions(root: &Command, words: &[OsString]) -> Vec<usize> {
    let mut command = root;
    let mut found = Vec::new();
    let mut place = 1;
    while let Some(word) = words.get(place) {
        let text = word.to_string_lossy();
        if let Some(flag) = text.strip_prefix('-').filter(|flag| !flag.is_empty()) {
            let flags = || root.get_arguments().chain(command.get_arguments());
            let takes_value = |known: &dyn Fn(&clap::Arg) -> bool| {
                flags().find(|flag| known(flag)).is_some_and(|flag| flag.get_action().takes_values())
            };
            // The value of `--flag=value` and `-fvalue` is in the same word. In `-ab value` it is that of the last one.
            let takes_next = match flag.strip_prefix('-') {
                Some(long) => takes_value(&|known| known.get_long() == Some(long)),
                None => {
                    let with_value = |letter: char| takes_value(&|known| known.get_short() == Some(letter));
                    flag.find(with_value).is_some_and(|first| first + 1 == flag.len())
                }
            };
            place += usize::from(takes_next);
        } else {
            if found.is_empty() {
                command = root.find_subcommand(&*text).unwrap_or(root);
            }
            found.push(place);
        }
        place += 1;
    }
    found
}

/// The words of a command line, with `KIND/ID` as `KIND ID`; of several of the same kind, the kind once.
pub(crate) fn apart(root: impl FnOnce() -> Command, words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = words.collect();
    // To know the commands takes longer than to start without: only whoever needs it pays for it.
    if !words.iter().skip(1).any(|word| word.as_encoded_bytes().contains(&b'/')) {
        return words;
    }
    let root = root();
    let positions = positions(&root, &words);
    let [command, names @ ..] = &*positions else { return words };
    let command = root.find_subcommand(&words[*command]);
    let Some(first) = names.first().filter(|_| command.is_some_and(names_a_document)) else {
        return words;
    };
    let split = |word: &OsString| {
        let (kind, id) = word.to_str()?.split_once('/')?;
        let is_name = !kind.is_empty() && !id.is_empty() && !id.contains('/');
        is_name.then(|| (kind.to_owned(), id.to_owned()))
    };
    let Some((kind, _)) = split(&words[*first]) else { return words };
    for name in names {
        if let Some((_, id)) = split(&words[*name]).filter(|(other, _)| *other == kind) {
            words[*name] = id.into();
        }
    }
    words.insert(*first, kind.into());
    words
}

/// Whether the first argument of a command is a kind, and the next an id.
fn names_a_document(command: &Command) -> bool {
    let mut arguments = command.get_positionals().map(|argument| argument.get_id().as_str());
    arguments.next() == Some("kind") && matches!(arguments.next(), Some("id" | "ids"))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::apart;
    use crate::arguments::Arguments;

    #[test]
    fn a_document_may_be_named_as_kubectl_names_it() {
        let apart = |line: &str| {
            let words = apart(Arguments::command, line.split(' ').map(Into::into));
            words.join(" ".as_ref()).into_string().expect("UTF-8")
        };
        assert_eq!(apart("frs get clusters/east"), "frs get clusters east");
        assert_eq!(
            apart("frs get clusters/east clusters/west -o json"),
            "frs get clusters east west -o json"
        );
        assert_eq!(
            apart("frs --context home patch ns/a --set b=c/d"),
            "frs --context home patch ns a --set b=c/d"
        );
        assert_eq!(apart("frs delete --plan ns/a ns/b"), "frs delete --plan ns a b");
        assert_eq!(apart("frs get -o name clusters/x"), "frs get -o name clusters x");
        assert_eq!(apart("frs get -wo name clusters/x"), "frs get -wo name clusters x");
        assert_eq!(apart("frs get -w clusters/x"), "frs get -w clusters x");
        assert_eq!(apart("frs patch --set a=b clusters/x"), "frs patch --set a=b clusters x");
        assert_eq!(apart("frs unassign --cluster X ns/sandbox"), "frs unassign --cluster X ns sandbox");
        assert_eq!(
            apart("frs --context get get -ojson clusters/x"),
            "frs --context get get -ojson clusters x"
        );
        for line in [
            "frs set override history component_path=apps/history",
            "frs inputs get ns/x",
            "frs get clusters east",
            "frs get",
            "frs apply -f a/b",
            "frs get --output json",
            "frs get /east",
            "frs get clusters/",
            "frs get clusters/a/b",
            "frs inputs east namespaces",
        ] {
            assert_eq!(apart(line), line);
        }
        // Two kinds at once are no one's names: the parser says so.
        assert_eq!(apart("frs get clusters/east ns/a"), "frs get clusters east ns/a");
    }
}
