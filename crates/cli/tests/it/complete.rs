//! What a shell offers. Names come from the service.

use std::path::Path;

use crate::frs::{Desk, FRS, World, words};

/// What is offered for the last word of a line.
fn offered(desk: &Desk, line: &str) -> Vec<String> {
    let mut all = words(line);
    if line.ends_with(' ') {
        all.push(String::new());
    }
    let index = all.len() - 1;
    let output = desk
        .command(FRS)
        .envs([("COMPLETE", "bash"), ("_CLAP_IFS", "\n")])
        .env("_CLAP_COMPLETE_INDEX", index.to_string())
        .arg("--")
        .args(all)
        .output()
        .expect("an end");
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8").lines().map(ToOwned::to_owned).collect()
}

#[test]
fn names_come_from_the_service() {
    let world = World::new();
    for (line, expected) in [
        ("frs get clusters ea", &["east"][..]),
        ("frs get clusters nobody", &[]),
        ("frs get n", &["namespaces"]),
        ("frs describe ns team", &["team-a", "team-b"]),
        ("frs edit component p", &["podinfo"]),
        ("frs delete rolebinding v", &["viewers"]),
        ("frs patch cluster w", &["west"]),
        ("frs history ns s", &["spare"]),
        ("frs assign namespace s", &["spare"]),
        ("frs assign namespace spare --cluster n", &["north"]),
        ("frs set override p", &["podinfo"]),
        ("frs unset patch podinfo -c e", &["east"]),
        ("frs disable c", &["cert-manager"]),
        ("frs decommission w", &["west"]),
        ("frs inputs e", &["east"]),
        ("frs inputs east role", &["rolebindings"]),
        ("frs cluster bootstrap n", &["north"]),
        ("frs create cluster x --like w", &["west"]),
    ] {
        assert_eq!(offered(&world.desk, line), expected, "{line}");
    }
    let all = offered(&world.desk, "frs get clusters ");
    assert_eq!(all[..3], ["east", "north", "west"], "{all:?}");
}

#[cfg(unix)]
#[test]
fn a_word_that_is_no_text_is_no_reason_to_panic() {
    use std::os::unix::ffi::OsStrExt;
    let world = World::new();
    let output = world
        .desk
        .command(FRS)
        .envs([("COMPLETE", "bash"), ("_CLAP_IFS", "\n"), ("_CLAP_COMPLETE_INDEX", "3")])
        .args(["--", "frs", "get", "clusters"])
        .arg(std::ffi::OsStr::from_bytes(b"ea\xff"))
        .output()
        .expect("an end");
    assert_eq!((output.status.code(), output.stdout), (Some(0), Vec::new()));
}

#[test]
fn commands_and_flags_need_no_service() {
    let desk = Desk::empty();
    assert_eq!(offered(&desk, "frs decom"), ["decommission"]);
    assert_eq!(offered(&desk, "frs get clusters --sel"), ["--selector"]);
    assert_eq!(offered(&desk, "frs get clusters -o ya"), ["yaml"]);
    assert_eq!(offered(&desk, "frs get clusters ea"), Vec::<String>::new());
    let nobody = Desk::at("http://127.0.0.1:1");
    assert_eq!(offered(&nobody, "frs get clusters ea"), Vec::<String>::new());
}

#[test]
fn contexts_come_from_the_configuration() {
    let desk = Desk::empty();
    desk.frs("config set-context home --url http://127.0.0.1:1").expect(0);
    desk.frs("config set-context work --url http://127.0.0.1:1").expect(0);
    assert_eq!(offered(&desk, "frs config use-context w"), ["work"]);
    assert_eq!(offered(&desk, "frs --context h"), ["home"]);
}

/// What a shell prints that runs this script, with the command line on its PATH.
fn printed(world: &World, shell: &str, script: &str) -> String {
    let path = std::env::var("PATH").expect("a path");
    let folder = Path::new(FRS).parent().expect("a folder").display();
    let output = world
        .desk
        .command(shell)
        .args(["-c", script])
        .env("PATH", format!("{folder}:{path}"))
        .env("TERM", "dumb")
        .output()
        .unwrap_or_else(|error| panic!("{shell}, which `make tools` installs: {error}"));
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{shell}: {stdout}{stderr}");
    stdout.into_owned()
}

#[test]
fn a_real_bash_completes() {
    let script = r#"
        source <(frs completion bash)
        COMP_WORDS=(frs get clusters ea) COMP_CWORD=3 COMP_TYPE=9
        _clap_complete_frs frs ea clusters
        printf '%s\n' "${COMPREPLY[@]}"
    "#;
    assert_eq!(printed(&World::new(), "bash", script), "east\n");
}

#[test]
fn a_real_fish_completes() {
    let script = "frs completion fish | source; complete -C 'frs get clusters ea'";
    assert_eq!(printed(&World::new(), "fish", script), "east\n");
}

/// zsh completes only where somebody types: in a terminal of its own, with a tab.
#[test]
fn a_real_zsh_completes() {
    let script = r"
        zmodload zsh/zpty
        zpty typed zsh -f -i
        zpty -w typed 'autoload -Uz compinit && compinit -u -D && source <(frs completion zsh)'
        zpty -w typed $'frs get clusters ea\t-o name > completed; exit'
        while zpty -r typed line; do :; done
        cat completed
    ";
    assert_eq!(printed(&World::new(), "zsh", script), "clusters/east\n");
}
