//! When a schedule runs: cron expressions, and words for usual ones. Pure.
//!
//! Velero's parser knows five fields, with lists, ranges, steps, and names of months and weekdays.

/// Words, and what they stand for.
#[rustfmt::skip]
const WORDS: [(&str, &str); 22] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
    ("yearly", "0 0 1 1 *"),
    ("annually", "0 0 1 1 *"),
    ("monthly", "0 0 1 * *"),
    ("weekly", "0 0 * * 0"),
    ("daily", "0 0 * * *"),
    ("hourly", "0 * * * *"),
    ("daily-1am", "0 1 * * *"),
    ("daily-2am", "0 2 * * *"),
    ("daily-3am", "0 3 * * *"),
    ("daily-6am", "0 6 * * *"),
    ("daily-noon", "0 12 * * *"),
    ("weekly-sunday", "0 0 * * 0"),
    ("weekly-monday", "0 0 * * 1"),
    ("weekly-friday", "0 0 * * 5"),
    ("weekly-saturday", "0 0 * * 6"),
];

const NO_NAMES: &[&str] = &[];
const MONTHS: &[&str] = &[
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const WEEKDAYS: &[&str] = &["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
/// The days of each month, in the longest year.
const DAYS: [u32; 12] = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

const FIELDS: [Field; 5] = [
    Field::new("minute", 0, 59, NO_NAMES),
    Field::new("hour", 0, 23, NO_NAMES),
    Field::new("day of the month", 1, 31, NO_NAMES),
    Field::new("month", 1, 12, MONTHS),
    Field::new("weekday", 0, 6, WEEKDAYS),
];

/// One of the five.
#[derive(Debug)]
struct Field {
    name: &'static str,
    first: u32,
    last: u32,
    /// Names of the values, from the first one on.
    names: &'static [&'static str],
}

/// The expression of a text: that of a word, or the text itself, if it is one.
pub(super) fn expression(text: &str) -> Result<String, String> {
    let text = text.trim();
    let lower = text.to_ascii_lowercase();
    if let Some((_, expression)) = WORDS.iter().find(|(word, _)| *word == lower) {
        return Ok((*expression).to_owned());
    }
    let fields: Vec<&str> = text.split_whitespace().collect();
    let [minute, hour, day, month, weekday] = fields.as_slice() else {
        return Err(format!(
            "{} fields instead of 5: write MINUTE HOUR DAY MONTH WEEKDAY (for example \"0 2 * * *\"), or a word such as \
             daily, weekly-sunday or @monthly",
            fields.len()
        ));
    };
    let mut chosen = [0; 5];
    let texts = [minute, hour, day, month, weekday];
    for ((values, field), text) in chosen.iter_mut().zip(&FIELDS).zip(texts) {
        *values = field.values(text)?;
    }
    let [_, _, days, months, _] = chosen;
    if is_any(weekday) && !has_day(days, months) {
        return Err(format!(
            "it never runs: no month of {month:?} has a day of {day:?}"
        ));
    }
    Ok(fields.join(" "))
}

/// Whether a field permits all values.
fn is_any(text: &str) -> bool {
    text == "*" || text == "?"
}

/// Whether one of the months has one of the days. Both are sets of bits.
fn has_day(days: u64, months: u64) -> bool {
    let mut lengths = (1..)
        .zip(DAYS)
        .filter(|(month, _)| contains(months, *month));
    lengths.any(|(_, length)| (1..=length).any(|day| contains(days, day)))
}

fn contains(set: u64, value: u32) -> bool {
    set & (1 << value) != 0
}

// === impl Field ===

impl Field {
    const fn new(
        name: &'static str,
        first: u32,
        last: u32,
        names: &'static [&'static str],
    ) -> Self {
        Self {
            name,
            first,
            last,
            names,
        }
    }

    /// The values of a list, as bits.
    fn values(&self, text: &str) -> Result<u64, String> {
        let mut items = text.split(',').map(|item| self.item(item));
        items.try_fold(0, |values, item| Ok(values | item?))
    }

    /// The values of a number, a range or steps.
    fn item(&self, text: &str) -> Result<u64, String> {
        let (range, step) = match text.split_once('/') {
            Some((range, step)) => (range, Some(self.step(step)?)),
            None => (text, None),
        };
        let (from, to) = if is_any(range) {
            (self.first, self.last)
        } else if let Some((from, to)) = range.split_once('-') {
            (self.value(from)?, self.value(to)?)
        } else {
            let from = self.value(range)?;
            (from, if step.is_some() { self.last } else { from })
        };
        if from > to {
            return Err(format!(
                "{}: range {range:?} ends before it begins",
                self.name
            ));
        }
        let values = (from..=to).step_by(step.unwrap_or(1));
        Ok(values.fold(0, |set, value| set | (1 << value)))
    }

    fn step(&self, text: &str) -> Result<usize, String> {
        let step = Some(text).filter(|text| is_number(text));
        let step = step.and_then(|text| text.parse::<usize>().ok());
        step.filter(|step| *step > 0).ok_or_else(|| {
            format!(
                "{}: step {text:?} is not a number greater than 0",
                self.name
            )
        })
    }

    fn value(&self, text: &str) -> Result<u32, String> {
        let mut named = (self.first..).zip(self.names);
        if let Some((value, _)) = named.find(|(_, name)| name.eq_ignore_ascii_case(text)) {
            return Ok(value);
        }
        let value = Some(text).filter(|text| is_number(text));
        let value = value.and_then(|text| text.parse::<u32>().ok());
        let value = value.filter(|value| (self.first..=self.last).contains(value));
        value.ok_or_else(|| {
            format!(
                "{}: {text:?} is not between {} and {}",
                self.name, self.first, self.last
            )
        })
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_for_expressions() {
        for (word, expected) in [
            ("@daily", "0 0 * * *"),
            ("Daily", "0 0 * * *"),
            (" @midnight ", "0 0 * * *"),
            ("annually", "0 0 1 1 *"),
            ("daily-noon", "0 12 * * *"),
            ("weekly-saturday", "0 0 * * 6"),
        ] {
            assert_eq!(expression(word).as_deref(), Ok(expected), "{word}");
        }
        for (word, text) in WORDS {
            assert_eq!(expression(text).as_deref(), Ok(text), "{word}");
        }
    }

    #[test]
    fn expressions_have_lists_ranges_steps_and_names() {
        for text in [
            "0 2 * * *",
            "*/15 * * * *",
            // Upstream refuses these two.
            "0 1-10/2 * * *",
            "0 1-3,5 * * *",
            "0,30 8-18 1,15 */3 1-5",
            "5/20 0 ? JAN-Mar sun,Sat",
            "0 0 29 2 *",
            // The weekday counts, too.
            "0 0 31 2 1",
        ] {
            assert_eq!(expression(text).as_deref(), Ok(text));
        }
        assert_eq!(expression("0  2\t* * *").as_deref(), Ok("0 2 * * *"));
    }

    #[test]
    fn wrong_expressions_are_refused_with_the_field() {
        for (text, expected) in [
            ("", "0 fields instead of 5"),
            ("midnight", "1 fields instead of 5"),
            ("@every 6h", "2 fields instead of 5"),
            ("0 2 * *", "4 fields instead of 5"),
            ("0 0 2 * * *", "6 fields instead of 5"),
            ("60 * * * *", "minute: \"60\" is not between 0 and 59"),
            ("-1 * * * *", "minute: \"\" is not between"),
            ("+1 * * * *", "minute: \"+1\" is not between"),
            ("0 24 * * *", "hour: \"24\""),
            (
                "0 0 0 * *",
                "day of the month: \"0\" is not between 1 and 31",
            ),
            ("0 0 * 13 *", "month: \"13\""),
            ("0 0 * * 7", "weekday: \"7\" is not between 0 and 6"),
            ("0 0 * * monday", "weekday: \"monday\""),
            ("0 5-1 * * *", "hour: range \"5-1\" ends before it begins"),
            (
                "*/0 * * * *",
                "minute: step \"0\" is not a number greater than 0",
            ),
            ("*/x * * * *", "minute: step \"x\""),
            ("1,,2 * * * *", "minute: \"\""),
            ("1-2-3 * * * *", "minute: \"2-3\""),
            ("0 0 30 2 *", "it never runs"),
            ("0 0 31 2,4,6 ?", "it never runs"),
        ] {
            let error = expression(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
