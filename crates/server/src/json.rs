//! Request bodies. Stricter than `serde_json`: a key that is given twice is an error, for only one of the two would count.

use std::marker::PhantomData;

use api::Strict;
use serde::Deserialize;
use serde::de::DeserializeSeed;
use serde_json::Value;

/// Reads a JSON text; what is wrong is told with its line and column.
pub fn read(bytes: &[u8]) -> Result<Value, String> {
    read_by(bytes, PhantomData::<Strict>).map(|Strict(value)| value)
}

/// The same, into whatever is to come of it.
pub fn read_by<'de, S: DeserializeSeed<'de>>(bytes: &'de [u8], seed: S) -> Result<S::Value, String> {
    let text = std::str::from_utf8(bytes).map_err(|error| format!("the body is not UTF-8: {error}"))?;
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value =
        seed.deserialize(&mut deserializer).map_err(|error| format!("the body is not JSON: {error}"))?;
    deserializer.end().map_err(|error| format!("the body is more than one JSON value: {error}"))?;
    Ok(value)
}

/// Reads a value into a type, or says what is wrong with it.
pub fn typed<T: for<'de> Deserialize<'de>>(value: Value) -> Result<T, String> {
    serde_json::from_value(value).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::read;

    #[test]
    fn a_body_reads_as_it_stands() {
        let text = br#"{"a":[1,-2,2.5,true,null,"x"],"b":{"c":18446744073709551615}}"#;
        assert_eq!(read(text), Ok(json!({"a": [1, -2, 2.5, true, null, "x"], "b": {"c": u64::MAX}})));
    }

    #[test]
    fn a_key_that_is_given_twice_is_an_error_wherever_it_is() {
        let error = read(br#"{"a":{"id":"x","id":"y"}}"#).expect_err("twice");
        assert_eq!(error, "the body is not JSON: the key `id` is given twice at line 1 column 19");
    }

    #[test]
    fn what_is_not_json_is_told_with_its_place() {
        for (text, told) in [
            (&b"{"[..], "the body is not JSON: EOF while parsing an object at line 1 column 1"),
            (b"", "the body is not JSON: EOF while parsing a value at line 1 column 0"),
            (b"{} {}", "the body is more than one JSON value: trailing characters at line 1 column 4"),
            (b"\xff", "the body is not UTF-8: invalid utf-8 sequence of 1 bytes from index 0"),
        ] {
            assert_eq!(read(text).expect_err("not JSON"), told);
        }
        let deep = "[".repeat(100_000);
        assert!(read(deep.as_bytes()).expect_err("too deep").contains("recursion limit exceeded"));
    }
}
