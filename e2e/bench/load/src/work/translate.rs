//! The translator by itself, beside the plainest ways to parse, and to search, the same bytes.

use std::hint::black_box;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};
use api::group::{CapiTypes, GroupTable};
use capi_translate::body::{self, Plan, Translator};
use capi_translate::target::Target;
use capi_translate::{Refusal, Rules};
use http::StatusCode;
use memchr::memmem::Finder;
use serde_json::Value;

use crate::fixture::Fixture;
use crate::wire::{Call, Speeds, Spelling, Translation};

/// What a TLS record brings at most, and so the most that a proxy sees at once.
const PIECE: usize = 16 * 1024;
/// A group that is in no table, for the list in which nothing changes.
const UNLISTED_GROUP: &str = "machine.openshift.io";

/// One list and what the translator must make of it.
struct Case {
    rules: Rules,
    target: Target,
    stored: Vec<u8>,
    seen: Vec<u8>,
}

/// One way to handle a body. It gives a number that depends on the whole body.
type Way<'c> = Box<dyn FnMut() -> Result<usize> + 'c>;

/// Runs every way for about `millis` with each of the two lists.
pub(super) fn measure(bytes: u64, millis: u64) -> Result<Translation> {
    let call = Call::List { bytes };
    let private = Fixture::new(Spelling::Private);
    let standard = Fixture::new(Spelling::Standard);
    let stored = private.response(call).to_bytes().to_vec();
    let unlisted_groups = unlisted_groups(&stored)?;
    let list = Case::new(
        &standard.machines(),
        stored,
        standard.response(call).to_bytes().to_vec(),
    )?;
    let path = format!("/apis/{UNLISTED_GROUP}/v1beta1/namespaces/default/machines");
    let unchanged = Case::new(&path, unlisted_groups.clone(), unlisted_groups)?;
    let period = Duration::from_millis(millis);
    Ok(Translation {
        list: list.speeds(period)?,
        unchanged: unchanged.speeds(period)?,
    })
}

/// The names of a pair of the table that all others end with.
fn suffix(capi_types: CapiTypes) -> String {
    let table = GroupTable::default();
    table
        .pairs()
        .first()
        .map(|pair| pair.name(capi_types).to_owned())
        .unwrap_or_default()
}

/// The same list in a group that is in no table, labels included.
fn unlisted_groups(list: &[u8]) -> Result<Vec<u8>> {
    let text = std::str::from_utf8(list)?;
    let text = [CapiTypes::Private, CapiTypes::Standard]
        .iter()
        .fold(text.to_owned(), |text, &capi_types| {
            text.replace(&suffix(capi_types), UNLISTED_GROUP)
        });
    Ok(text.into_bytes())
}

// === impl Case ===

impl Case {
    fn new(path: &str, stored: Vec<u8>, seen: Vec<u8>) -> Result<Self> {
        let rules = Rules::default();
        let target = Target::parse(&rules, path).map_err(|refusal| refused(&refusal))?;
        let case = Self {
            rules,
            target,
            stored,
            seen,
        };
        case.check()?;
        Ok(case)
    }

    /// A speed is meaningless if the result is wrong.
    fn check(&self) -> Result<()> {
        let mut streamed = Vec::new();
        self.stream(&mut streamed)?;
        let whole = self.whole()?;
        if streamed != self.seen || whole.as_ref().unwrap_or(&self.stored) != &self.seen {
            bail!("the translator makes something else of the list than expected");
        }
        Ok(())
    }

    fn translator(&self) -> Result<Box<Translator>> {
        let plan = body::response(
            &self.rules,
            &self.target,
            StatusCode::OK,
            Some("application/json"),
        );
        match plan.map_err(|refusal| refused(&refusal))? {
            Plan::Translate(translator) => Ok(translator),
            Plan::Pass => bail!("the translator passes the list without a look"),
        }
    }

    /// Piece by piece. The output's buffer holds what one piece becomes, as in the proxy; `all` takes everything.
    fn stream(&self, all: &mut Vec<u8>) -> Result<()> {
        self.pieces(|out| all.extend_from_slice(out)).map(drop)
    }

    fn pieces(&self, mut sink: impl FnMut(&[u8])) -> Result<usize> {
        let mut translator = self.translator()?;
        let mut out = Vec::with_capacity(2 * PIECE);
        let mut length = 0;
        for piece in self.stored.chunks(PIECE) {
            out.clear();
            translator
                .push(piece, &mut out)
                .map_err(|refusal| refused(&refusal))?;
            length += out.len();
            sink(&out);
        }
        out.clear();
        translator
            .finish(&mut out)
            .map_err(|refusal| refused(&refusal))?;
        sink(&out);
        Ok(length + out.len())
    }

    fn whole(&self) -> Result<Option<Vec<u8>>> {
        self.translator()?
            .whole(&self.stored)
            .map_err(|refusal| refused(&refusal))
    }

    /// The ways take turns, so that a busy moment of the machine hits all of them.
    fn speeds(&self, period: Duration) -> Result<Speeds> {
        let finder = Finder::new(&suffix(CapiTypes::Private)).into_owned();
        let mut ways: [Way<'_>; 4] = [
            Box::new(|| self.pieces(|out| _ = black_box(out))),
            Box::new(|| Ok(self.whole()?.map_or(0, |out| black_box(out).len()))),
            Box::new(|| parse_and_print(&self.stored)),
            Box::new(move || Ok(finder.find_iter(&self.stored).count())),
        ];
        let mut times: [Vec<f64>; 4] = Default::default();
        let start = Instant::now();
        while times[0].is_empty() || start.elapsed() < period * 4 {
            for (way, times) in ways.iter_mut().zip(&mut times) {
                let start = Instant::now();
                black_box(way()?);
                times.push(start.elapsed().as_secs_f64());
            }
        }
        let [stream, whole, serde_json, search] = times.map(|times| self.speed(times));
        Ok(Speeds {
            stream,
            whole,
            serde_json,
            search,
        })
    }

    /// Gigabytes a second, by the median time.
    fn speed(&self, mut times: Vec<f64>) -> f64 {
        times.sort_by(f64::total_cmp);
        let length = u32::try_from(self.stored.len()).map_or(f64::INFINITY, f64::from);
        length / times[times.len() / 2] / 1e9
    }
}

fn parse_and_print(body: &[u8]) -> Result<usize> {
    let tree: Value = serde_json::from_slice(body)?;
    Ok(black_box(serde_json::to_vec(&tree)?).len())
}

fn refused(refusal: &Refusal) -> anyhow::Error {
    anyhow!("the translator refuses the list: {refusal}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_lists_are_translated_and_every_method_has_a_speed() {
        let Translation { list, unchanged } = measure(100_000, 1).unwrap();
        for Speeds {
            stream,
            whole,
            serde_json,
            search,
        } in [list, unchanged]
        {
            for speed in [stream, whole, serde_json, search] {
                assert!(speed.is_finite() && speed > 0.0, "{speed}");
            }
        }
    }

    #[test]
    fn the_unchanged_list_mentions_no_group_of_the_table() {
        let list = Fixture::new(Spelling::Private).response(Call::List { bytes: 10_000 });
        let text = String::from_utf8(unlisted_groups(&list.to_bytes()).unwrap()).unwrap();
        assert!(
            !text.contains(&suffix(CapiTypes::Private))
                && !text.contains(&suffix(CapiTypes::Standard))
        );
        assert!(text.contains("\"kind\":\"MachineList\""));
    }
}
