//! YAML bodies of requests: names are replaced in place, every other byte is unchanged.
//!
//! The parser's events say what a document means and the position of each scalar. The API server reads the same bytes with
//! an older parser, so whatever the two could read differently is refused rather than guessed at, as are aliases: what
//! they repeat may be a place in one spot and a value in another.

mod scalar;
mod source;
mod walk;

use saphyr_parser::{Event, Parser};

use super::{Counts, Refusal, Rules, place::Node};
use scalar::Scalar;
use walk::Walk;

/// Swaps the names in one YAML document at `root`, appending the result to `out`.
///
/// On an error `out` is left as it was.
pub fn swap(rules: &Rules, root: Node, input: &[u8], out: &mut Vec<u8>) -> Result<Counts, Refusal> {
    let text = source::check(input)?;
    let ascii = source::mask(text);
    let mut parser = Parser::new_from_str(&ascii);
    let mut walk = Walk::new(rules, root, text);
    while let Some(event) = parser.next_event() {
        let (event, span) = event.map_err(|error| malformed(error.marker().line()))?;
        let at = span.start.index()..span.end.index();
        match event {
            Event::DocumentStart(_) => walk.document()?,
            Event::MappingStart(_, tag) => walk.open_mapping(tag.as_deref())?,
            Event::SequenceStart(_, tag) => walk.open_sequence(tag.as_deref())?,
            Event::MappingEnd | Event::SequenceEnd => walk.close(),
            Event::Scalar(value, style, _, tag) => {
                walk.scalar(&Scalar {
                    value: &value,
                    style,
                    tag: tag.as_deref(),
                    at,
                })?;
            }
            Event::Alias(_) => walk.alias(),
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {}
        }
    }
    walk.write(out)
}

fn malformed(line: usize) -> Refusal {
    Refusal::malformed(format!("the body is not YAML: see line {line}"))
}

#[cfg(test)]
mod tests;
