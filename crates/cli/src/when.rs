//! Times as people say them.

use jiff::{SignedDuration, Timestamp};

use crate::failure::Failure;

/// A time for a filter: RFC 3339, or how long ago (`2h`, `3d`).
pub(crate) fn moment(text: &str) -> Result<String, Failure> {
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(format!("{time:.3}"));
    }
    let ago = duration(text).ok_or_else(|| {
        Failure::usage(format!(
            "`{text}` is neither a time such as 2026-11-16T09:00:00Z nor how long ago, such as 30m, 2h or 7d"
        ))
    })?;
    let moment = Timestamp::now()
        .checked_sub(ago)
        .map_err(|_| Failure::usage(format!("`{text}` ago is before all calendars")))?;
    Ok(format!("{moment:.3}"))
}

/// `30s`, `5m`, `2h`, `7d`.
pub(crate) fn duration(text: &str) -> Option<SignedDuration> {
    let split = text.find(|character: char| !character.is_ascii_digit())?;
    let number: i64 = text[..split].parse().ok()?;
    let seconds = match &text[split..] {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return None,
    };
    number.checked_mul(seconds).map(SignedDuration::from_secs)
}

/// How long ago, in the way of kubectl: `45s`, `12m`, `3h`, `2d`.
pub(crate) fn age(time: &str) -> String {
    let Ok(time) = time.parse::<Timestamp>() else { return time.to_owned() };
    let seconds = Timestamp::now().duration_since(time).as_secs().max(0);
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7_200 => format!("{}m", seconds / 60),
        7_200..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};

    use super::{age, duration, moment};
    use crate::failure::Failure;

    #[test]
    fn durations_have_one_unit() {
        assert_eq!(duration("90m"), Some(SignedDuration::from_mins(90)));
        assert_eq!(duration("2d"), Some(SignedDuration::from_hours(48)));
        for wrong in ["", "5", "m", "5w", "-5m", "1h30m", "99999999999999999999d"] {
            assert_eq!(duration(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_moment_is_a_time_or_how_long_ago() {
        assert_eq!(moment("2026-11-16T10:00:00+02:00").expect("a time"), "2026-11-16T08:00:00.000Z");
        let hour: Timestamp = moment("1h").expect("a time").parse().expect("a time");
        assert_eq!(Timestamp::now().duration_since(hour).as_mins(), 60);
        assert!(moment("yesterday").is_err());
        assert!(matches!(moment("9999999d"), Err(Failure::Usage(_))));
    }

    #[test]
    fn ages_are_short() {
        let ago = |seconds| age(&(Timestamp::now() - SignedDuration::from_secs(seconds)).to_string());
        assert_eq!([ago(5), ago(300), ago(10_000), ago(400_000)], ["5s", "5m", "2h", "4d"]);
    }
}
