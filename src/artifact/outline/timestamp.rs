//! Timestamps at the start of log lines.

/// How much of a timestamp is known. Only two of the same kind can be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StampKind {
    /// Date and time.
    Dated,
    /// Month, day and time, as syslog writes it.
    Yearless,
    /// The time of day.
    TimeOfDay,
}

/// A timestamp of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) kind: StampKind,
    /// Milliseconds from a start that is the same for all stamps of the kind.
    pub(super) millis: i64,
    /// Where it begins in the line.
    pub(super) start: usize,
    /// Where its seconds end.
    pub(super) seconds_end: usize,
    /// Where it ends.
    pub(super) end: usize,
}

const MILLIS_PER_DAY: i64 = 86_400_000;
const MONTHS: &[u8; 36] = b"JanFebMarAprMayJunJulAugSepOctNovDec";
/// Spaces and brackets before a timestamp.
const MAX_LEAD_BYTES: usize = 4;
/// `INFO`, `CRITICAL`.
const MAX_LEVEL_BYTES: usize = 8;

impl Stamp {
    /// Reads the timestamp with which a line begins, after brackets or the name of a level: RFC 3339 and
    /// its relatives (`2026-01-02 03:04:05,678`, `2026/01/02 …`), `Jan  2 03:04:05`, `03:04:05`.
    pub(super) fn of(line: &[u8]) -> Option<Self> {
        let start = skip_lead(line, 0);
        if let Some(stamp) = Self::at(line, start) {
            return Some(stamp);
        }
        let level = line[start.min(line.len())..]
            .iter()
            .take_while(|byte| byte.is_ascii_uppercase())
            .count();
        if !(3..=MAX_LEVEL_BYTES).contains(&level) {
            return None;
        }
        let after = start + level;
        let start = skip_lead(line, after);
        (start > after).then(|| Self::at(line, start)).flatten()
    }

    fn at(line: &[u8], start: usize) -> Option<Self> {
        let text = line.get(start..)?;
        let (kind, days, time_at) = match *text.first()? {
            b'0'..=b'9' if text.get(2) == Some(&b':') => (StampKind::TimeOfDay, 0, 0),
            b'0'..=b'9' => (StampKind::Dated, date(text)?, 11),
            b'A'..=b'Z' => (StampKind::Yearless, month_and_day(text)?, 7),
            _ => return None,
        };
        let time = text.get(time_at..)?;
        let seconds = time_of_day(time)?;
        let mut end = time_at + 8;
        let mut millis = days * MILLIS_PER_DAY + seconds * 1_000;
        if let Some((fraction, length)) = fraction(&text[end..]) {
            millis += fraction;
            end += length;
        }
        if kind == StampKind::Dated
            && let Some((offset, length)) = zone(&text[end..])
        {
            millis -= offset * 60_000;
            end += length;
        }
        let goes_on = text
            .get(end)
            .is_some_and(|byte| byte.is_ascii_digit() || *byte == b':');
        (!goes_on || kind != StampKind::TimeOfDay).then_some(Self {
            kind,
            millis,
            start,
            seconds_end: start + time_at + 8,
            end: start + end,
        })
    }

    /// Returns the milliseconds from `earlier` to this one; `None` for another kind or for no later one.
    pub(super) fn millis_since(&self, earlier: &Self) -> Option<u64> {
        if self.kind != earlier.kind {
            return None;
        }
        let mut millis = self.millis - earlier.millis;
        // Past midnight; a smaller step back is only lines out of order.
        if self.kind == StampKind::TimeOfDay && millis < -MILLIS_PER_DAY / 2 {
            millis += MILLIS_PER_DAY;
        }
        u64::try_from(millis).ok()
    }
}

fn skip_lead(line: &[u8], from: usize) -> usize {
    let lead = line[from.min(line.len())..]
        .iter()
        .take(MAX_LEAD_BYTES)
        .take_while(|byte| matches!(byte, b' ' | b'[' | b'(' | b'|' | b'\t'));
    from + lead.count()
}

fn digits(text: &[u8], most: i64) -> Option<i64> {
    let number = text.iter().try_fold(0, |number, byte| {
        byte.is_ascii_digit()
            .then(|| number * 10 + i64::from(byte - b'0'))
    })?;
    (number <= most).then_some(number)
}

/// `2026-01-02` and what separates it from the time; in days.
fn date(text: &[u8]) -> Option<i64> {
    let separator = *text.get(4)?;
    let is_date = matches!(separator, b'-' | b'/')
        && *text.get(7)? == separator
        && matches!(text.get(10)?, b'T' | b't' | b' ' | b'_');
    if !is_date {
        return None;
    }
    let month = digits(&text[5..7], 12)?;
    let day = digits(&text[8..10], 31)?;
    days_from_civil(digits(&text[..4], 9_999)?, month, day)
}

/// Days since a fixed day, in the Gregorian calendar: years that begin in March, so that the leap day is
/// their last.
fn days_from_civil(year: i64, month: i64, day: i64) -> Option<i64> {
    if month == 0 || day == 0 {
        return None;
    }
    let year = if month < 3 { year - 1 } else { year };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    Some(365 * year + leap_days + day_of_year)
}

/// `Jan  2 ` or `Jan 02 `, in days of a leap year.
fn month_and_day(text: &[u8]) -> Option<i64> {
    if text.get(3) != Some(&b' ') || text.get(6) != Some(&b' ') {
        return None;
    }
    let month = MONTHS.chunks(3).position(|name| *name == text[..3])?;
    let day = digits(text[4..6].trim_ascii_start(), 31)?;
    days_from_civil(2_000, i64::try_from(month).ok()? + 1, day)
}

/// `03:04:05`, in seconds.
fn time_of_day(text: &[u8]) -> Option<i64> {
    if text.get(2) != Some(&b':') || text.get(5) != Some(&b':') {
        return None;
    }
    let hours = digits(&text[..2], 23)?;
    let minutes = digits(&text[3..5], 59)?;
    // 60 is a leap second.
    let seconds = digits(text.get(6..8)?, 60)?;
    Some(hours * 3_600 + minutes * 60 + seconds)
}

/// `.678` or `,678`, in milliseconds, with its length.
fn fraction(text: &[u8]) -> Option<(i64, usize)> {
    if !matches!(text.first()?, b'.' | b',') {
        return None;
    }
    let digits = text[1..].iter().take_while(|byte| byte.is_ascii_digit());
    let count = digits.clone().count();
    if count == 0 {
        return None;
    }
    let padded = digits.copied().chain(std::iter::repeat(b'0')).take(3);
    let millis = padded.fold(0, |millis, digit| millis * 10 + i64::from(digit - b'0'));
    Some((millis, 1 + count))
}

/// `Z`, `+02:00`, `+0200` or ` +0200`, in minutes east, with its length.
fn zone(text: &[u8]) -> Option<(i64, usize)> {
    if text.first() == Some(&b'Z') {
        return Some((0, 1));
    }
    let space = usize::from(text.first() == Some(&b' '));
    let sign = match text.get(space)? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let hours = digits(text.get(space + 1..space + 3)?, 14)?;
    let colon = usize::from(text.get(space + 3) == Some(&b':'));
    let minutes = digits(text.get(space + 3 + colon..space + 5 + colon)?, 59)?;
    Some((sign * (hours * 60 + minutes), space + 5 + colon))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gap(earlier: &str, later: &str) -> Option<u64> {
        let stamp = |line: &str| Stamp::of(line.as_bytes());
        stamp(later)?.millis_since(&stamp(earlier)?)
    }

    #[test]
    fn the_usual_forms_are_read() {
        for (earlier, later, millis) in [
            ("2026-02-28T23:59:59Z x", "2026-03-01T00:00:00.5Z", 1_500),
            (
                "2024-02-28 00:00:00",
                "2024-03-01 00:00:00,001",
                172_800_001,
            ),
            (
                "2026-01-01T00:00:00+01:00",
                "2026-01-01 00:00:00 +0000",
                3_600_000,
            ),
            ("[2026/01/01 10:00:00] a", "2026/01/01 10:00:02 b", 2_000),
            (
                "INFO 2026-01-01 10:00:00,100",
                "ERROR [2026-01-01 10:00:00,350]",
                250,
            ),
            ("Dec  9 10:00:00 host", "Dec 10 10:00:01 host", 86_401_000),
            ("Feb 29 00:00:00 h", "Mar  1 00:00:00 h", 86_400_000),
            ("[10:00:00] a", "10:00:01.250 b", 1_250),
            ("23:59:59", "00:00:01", 2_000),
        ] {
            assert_eq!(gap(earlier, later), Some(millis), "{earlier} .. {later}");
        }
    }

    #[test]
    fn what_only_looks_like_a_timestamp_is_none() {
        for line in [
            "",
            "2026",
            "2026-13-01 00:00:00",
            "2026-01-00 00:00:00",
            "2026-01-01",
            "24:00:00",
            "10:61:00",
            "10:00",
            "10:00:00:00",
            "Foo 12 10:00:00",
            "Jan 1",
            "JanX",
            "12345678901234567890",
            "at 10:00:00",
            "é",
            "[[[[[",
            "INFO",
            "INFO10:00:00",
            "2026-01-01x00:00:00",
            "10:00:0",
        ] {
            assert_eq!(Stamp::of(line.as_bytes()), None, "{line}");
        }
        assert_eq!(gap("10:00:01", "10:00:00"), None, "out of order");
        assert_eq!(gap("10:00:00", "2026-01-01 10:00:01"), None, "other kinds");
    }
}
