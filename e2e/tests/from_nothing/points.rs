//! At which calls commands are killed. Pure.

use std::fmt;

use testbed::calls::{Call, Hold};

/// A command, and the call at which it is killed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Point {
    /// The number of the command, from zero.
    pub(super) step: usize,
    pub(super) hold: Hold,
    /// The call.
    name: String,
}

// === impl Point ===

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let command = self.step + 1;
        write!(f, "command {command}, {:?}, {}", self.hold, self.name)
    }
}

/// One of `every` points of commands, by the calls of each.
pub(super) fn points(commands: &[Vec<Call>], every: usize) -> Vec<Point> {
    let all = commands
        .iter()
        .enumerate()
        .flat_map(|(step, calls)| calls.iter().enumerate().flat_map(move |it| at(step, it)));
    all.step_by(every.max(1)).collect()
}

/// The points at a call. A killed read has changed nothing, so that one is enough.
fn at(step: usize, (index, call): (usize, &Call)) -> Vec<Point> {
    let point = |hold| Point {
        step,
        hold,
        name: call.name.clone(),
    };
    let number = index + 1;
    let mut points = vec![point(Hold::Before(number))];
    if call.writes {
        points.push(point(Hold::After(number)));
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: &str, writes: bool) -> Call {
        Call {
            name: name.to_owned(),
            writes,
        }
    }

    #[test]
    fn reads_have_one_point_and_writes_two() {
        let commands = [
            vec![call("List", false), call("Create", true)],
            vec![call("Delete", true)],
        ];
        let lines = |every| {
            let points = points(&commands, every);
            points.iter().map(Point::to_string).collect::<Vec<_>>()
        };
        let expected = [
            "command 1, Before(1), List",
            "command 1, Before(2), Create",
            "command 1, After(2), Create",
            "command 2, Before(1), Delete",
            "command 2, After(1), Delete",
        ];
        assert_eq!(lines(1), expected);
        assert_eq!(lines(2), [expected[0], expected[2], expected[4]]);
        assert_eq!(lines(9), [expected[0]]);
    }
}
