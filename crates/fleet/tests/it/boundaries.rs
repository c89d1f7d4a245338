//! The limits of the Flux Operator, to the byte: the write that would cross one is refused.

use crate::common::*;
use fleet::{MAX_CHANGES, MAX_INPUTS, MAX_SENT, MAX_STORED, Reason};
use serde_json::{Value, json};

/// A cluster that gets `notes` of the kind `tinies`, one for each.
fn holder(fleet: &mut Fleet, notes: &[String]) -> Result<fleet::Applied, fleet::Rejection> {
    let create_note =
        |(n, note): (usize, &String)| create("tinies", json!({"id": format!("n{n}"), "note": note}));
    let mut body = cluster("holder");
    body["tinies"] = (0..notes.len()).map(|n| json!({"id": format!("n{n}")})).collect::<Value>();
    let mut operations = vec![tiny_kind(&json!({"note": {"type": "string"}}))];
    operations.extend(notes.iter().enumerate().map(create_note));
    operations.push(create("clusters", body));
    fleet.try_apply(operations)
}

fn bytes(fleet: &Fleet) -> usize {
    match fleet::render(&fleet.state, "holder.k8s.example.com", "tinies") {
        fleet::Answer::Inputs(inputs) => inputs.body().len(),
        other => panic!("{other:?}"),
    }
}

/// Notes that make the answer exactly that many bytes, the last one to be filled with `filler`.
fn notes_for(target: usize, filler: &str) -> Vec<String> {
    const NOTES: usize = 20;
    let mut probe = Fleet::empty();
    let empty = vec![String::new(); NOTES];
    holder(&mut probe, &empty).expect("small");
    let missing = target - bytes(&probe);
    let each = missing / NOTES / filler.len() * filler.len();
    let mut notes = vec![filler.repeat(each / filler.len()); NOTES];
    notes[0].push_str(&"x".repeat(missing - each * NOTES));
    notes
}

#[test]
fn ten_thousand_inputs_are_accepted_and_one_more_is_not() {
    let mut fleet = Fleet::empty();
    // Short names: ten thousand inputs are almost more than an answer may hold.
    let digit = |n: usize| char::from_digit(u32::try_from(n % 36).expect("small"), 36).expect("a digit");
    let id = |n: usize| [n / 1_296, n / 36, n].map(digit).iter().collect::<String>();
    let ids: Vec<String> = (0..=MAX_INPUTS).map(id).collect();
    fleet.accept(vec![tiny_kind(&json!({}))]);
    for some in ids.chunks(MAX_CHANGES) {
        fleet.accept(some.iter().map(|id| create("tinies", json!({"id": id}))).collect());
    }
    let mut body = json!({"id": "holder", "cluster_name": "h", "cluster_dns": "h", "environment": "qa"});
    body["tinies"] = ids[..MAX_INPUTS].iter().map(|id| json!({"id": id})).collect::<Value>();
    fleet.accept(vec![create("clusters", body)]);
    let fleet::Answer::Inputs(inputs) = fleet::render(&fleet.state, "h", "tinies") else { panic!("served") };
    assert_eq!(inputs.count(), 10_000);

    let rejection = fleet.reject(vec![assign("holder", "tinies", &ids[MAX_INPUTS], json!(null))]);
    assert_eq!(rejection.reason(), Some(&Reason::TooLarge));
    let message = &rejection.violations()[0].message;
    assert!(
        message.starts_with("the tinies of the cluster `holder` would be 10001 inputs and "),
        "{message}"
    );
}

#[test]
fn a_transaction_changes_ten_thousand_entries_and_no_more() {
    let mut fleet = Fleet::empty();
    fleet.accept(vec![tiny_kind(&json!({"note": {"type": "string"}}))]);
    let tinies = |count: usize, note: &str| {
        (0..count).map(|n| create("tinies", json!({"id": format!("n{n}"), "note": note}))).collect::<Vec<_>>()
    };
    assert_eq!(
        fleet.complaints(tinies(MAX_CHANGES + 1, "")),
        [
            ": this writes more than 10000 documents, which are the most at once: the first 10000 of its 10001 operations fit; send the others separately"
        ]
    );
    fleet.accept(tinies(MAX_CHANGES, ""));
}

#[test]
fn a_transaction_changes_32_mib_and_no_byte_more() {
    let mut fleet = Fleet::empty();
    fleet.accept(vec![tiny_kind(&json!({"note": {"type": "string"}}))]);
    // 1,024 documents of 32 KiB each; the last one has some bytes more.
    let tinies = |more: usize| {
        let frame = r#"{"id":"n0000","note":""}"#.len();
        let note = |n: usize| "y".repeat(32 * 1024 - frame + if n == 1_023 { more } else { 0 });
        let tiny = |n: usize| create("tinies", json!({"id": format!("n{n:04}"), "note": note(n)}));
        (0..1_024).map(tiny).collect::<Vec<_>>()
    };
    let rejection = fleet.reject(tinies(1));
    assert_eq!(rejection.reason(), Some(&Reason::TooLarge));
    assert_eq!(
        rejection.violations()[0].message,
        "the changed documents have 33554433 bytes; at most 33554432 at once: split it into several changes, for example by a narrower selector"
    );
    fleet.accept(tinies(0));
}

#[test]
fn an_answer_of_921_600_bytes_is_accepted_and_one_more_is_not() {
    let mut fleet = Fleet::empty();
    let mut notes = notes_for(MAX_SENT, "y");
    holder(&mut fleet, &notes).expect("exactly the limit");
    assert_eq!(bytes(&fleet), 921_600);
    // One byte more, through the definition: the cluster's own document does not change.
    notes[0].push('x');
    let rejection = fleet.reject(vec![put("tinies", "n0", json!({"note": notes[0]}))]);
    assert_eq!(rejection.reason(), Some(&Reason::TooLarge));
    let message = &rejection.violations()[0].message;
    assert!(
        message.starts_with("the tinies of the cluster `holder` would be 20 inputs and 921601 bytes"),
        "{message}"
    );
    // And through the cluster: an override.
    let rejection = fleet.reject(vec![assign("holder", "tinies", "n0", json!({"note": notes[0]}))]);
    assert_eq!(
        (rejection.reason(), rejection.violations()[0].pointer.as_str()),
        (Some(&Reason::TooLarge), "/tinies")
    );
    // And through the kind: a default that every input gets.
    let rejection =
        fleet.reject(vec![tiny_kind(&json!({"note": {"type": "string"}, "z": {"type": "string"}}))]);
    assert_eq!(rejection.reason(), Some(&Reason::TooLarge));
}

#[test]
fn angle_brackets_and_ampersands_are_counted_as_the_six_bytes_that_they_become() {
    for (filler, six) in [("<", 5), (">", 5), ("&", 5), ("\u{2028}", 3), ("\u{2029}", 3)] {
        let mut probe = Fleet::empty();
        holder(&mut probe, &vec![String::new(); 4]).expect("small");
        // As many as fit, and the rest in plain characters.
        let room = MAX_STORED - bytes(&probe);
        let each_stored = filler.len() + six;
        let count = room / each_stored;
        let plain = room - count * each_stored;
        let mut notes: Vec<String> =
            (0..4).map(|n| filler.repeat(count / 4 + usize::from(n < count % 4))).collect();
        notes[3].push_str(&"x".repeat(plain));
        if notes.iter().any(|note| note.len() > 60_000) {
            notes = notes.iter().flat_map(|note| split(note, 8)).collect();
            let mut probe = Fleet::empty();
            holder(&mut probe, &vec![String::new(); notes.len()]).expect("small");
            let over = bytes(&probe) - (MAX_STORED - room);
            shorten(&mut notes, filler, each_stored, over);
        }
        let mut fleet = Fleet::empty();
        holder(&mut fleet, &notes).unwrap_or_else(|rejection| panic!("{filler:?}: {rejection:#?}"));
        notes[0].push('x');
        let rejection = holder(&mut Fleet::empty(), &notes).expect_err("one byte more");
        assert_eq!(rejection.reason(), Some(&Reason::TooLarge), "{filler:?}");
        let message = &rejection.violations()[0].message;
        assert!(message.contains("(1048577 as the Flux Operator stores them)"), "{filler:?}: {message}");
    }
}

fn split(note: &str, parts: usize) -> Vec<String> {
    let characters: Vec<char> = note.chars().collect();
    characters.chunks(characters.len().div_ceil(parts)).map(|part| part.iter().collect()).collect()
}

/// Takes away what the frames of more inputs need, to the byte.
fn shorten(notes: &mut [String], filler: &str, each_stored: usize, over: usize) {
    let fewer = over.div_ceil(each_stored);
    for n in 0..fewer {
        let at = n % notes.len();
        let note = &mut notes[at];
        let last = note.rfind(filler).expect("there are many");
        note.replace_range(last..last + filler.len(), "");
    }
    notes[1].push_str(&"x".repeat(fewer * each_stored - over));
}

/// A cluster with one helm component whose answer measures exactly that, by a patch value of so many `filler` and some plain characters.
fn patched(fleet: &mut Fleet, filler: &str, sent: Option<usize>, stored: Option<usize>) {
    let mut web = component("web");
    web["component_version"] = json!("12345");
    fleet.accept(vec![create("platform_components", web)]);
    let body = |value: &str| {
        let mut body = cluster("holder");
        body["platform_components"] = json!([{"id": "web"}]);
        body["patches"] = json!({"web": {"k": value, "l": "x"}});
        body
    };
    let measure = |value: &str| {
        let mut probe = Fleet::empty();
        probe.state = fleet.state.clone();
        probe.accept(vec![create("clusters", body(value))]);
        let text = probe.inputs("holder", "platform-components").to_string();
        let sent = r#"{"inputs":}"#.len() + text.len();
        (sent, sent + 5 * text.matches(['<', '>', '&']).count())
    };
    // The value is sent twice, as a patch and as a value; `l` evens out what is odd.
    let (sent_empty, stored_empty) = measure("");
    let (room, each) = match (sent, stored) {
        (Some(sent), _) => (sent - sent_empty, 2 * filler.len()),
        (_, Some(stored)) => (stored - stored_empty, 12),
        _ => panic!("one of them"),
    };
    let value = filler.repeat(room / each);
    let left = room - room / each * each;
    let mut whole = body(&value);
    whole["patches"]["web"]["l"] = json!("x".repeat(1 + left / 2));
    whole["cluster_name"] = json!(format!("holder{}", "x".repeat(left % 2)));
    fleet.accept(vec![create("clusters", whole)]);
}

#[test]
fn a_component_that_grows_by_one_byte_is_refused_where_the_answer_is_full() {
    let mut fleet = Fleet::empty();
    patched(&mut fleet, "y", Some(MAX_SENT), None);
    let version =
        |version: &str| vec![strategic("platform_components", "web", json!({"component_version": version}))];
    assert_eq!(fleet.reject(version("123456")).reason(), Some(&Reason::TooLarge));
    fleet.accept(version("54321"));
    fleet.accept(version("1234"));
}

#[test]
fn a_component_that_shrinks_as_sent_but_grows_as_stored_is_refused_where_the_answer_is_full() {
    let mut fleet = Fleet::empty();
    patched(&mut fleet, "<", None, Some(MAX_STORED));
    let version =
        |version: &str| vec![strategic("platform_components", "web", json!({"component_version": version}))];
    assert_eq!(
        fleet.reject(version("<")).reason(),
        Some(&Reason::TooLarge),
        "five bytes become one, and six as they are stored"
    );
    fleet.accept(version("abcde"));
}
