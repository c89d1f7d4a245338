//! The time of day, and whether it can be right.

use std::time::{Duration, SystemTime};

use fleet::Timestamp;

/// Clocks of two machines may differ by this much without a word.
const TOLERANCE: Duration = Duration::from_mins(5);
/// The last second that HTTP has a date for: the end of the year 9999, since 1970.
const LAST_DATE: u64 = 253_402_300_799;

/// The time of day.
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// How far this process's clock is behind the time of a commit, if that is more than clocks differ. Either it is wrong, or the one that
/// stamped the commit was: commits keep that time until it is reached, and what the guard has counted stays counted.
pub(crate) fn behind(commit: Timestamp, now: Timestamp) -> Option<Duration> {
    let ahead = u64::try_from(commit.0.saturating_sub(now.0)).ok().map(Duration::from_millis)?;
    (ahead > TOLERANCE).then_some(ahead)
}

/// Whether HTTP can write this time as a date. hyper panics where it cannot.
pub(crate) fn has_http_date(time: SystemTime) -> bool {
    time.duration_since(SystemTime::UNIX_EPOCH).is_ok_and(|since| since.as_secs() <= LAST_DATE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_of_the_future_is_noticed_beyond_what_clocks_differ() {
        let at = |seconds: i64| Timestamp(seconds * 1_000);
        assert_eq!(behind(at(1_000), at(1_000)), None);
        assert_eq!(behind(at(1_300), at(1_000)), None);
        assert_eq!(behind(at(1_301), at(1_000)), Some(Duration::from_secs(301)));
        assert_eq!(behind(at(1_000), at(9_000)), None);
        assert_eq!(
            behind(Timestamp(i64::MAX), Timestamp(i64::MIN)),
            Some(Duration::from_millis(i64::MAX as u64))
        );
    }

    #[test]
    fn http_has_no_date_after_the_year_9999() {
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        assert!(has_http_date(at(0)) && has_http_date(at(LAST_DATE)));
        assert!(!has_http_date(at(LAST_DATE + 1)));
        assert!(!has_http_date(SystemTime::UNIX_EPOCH - Duration::from_secs(1)));
    }
}
