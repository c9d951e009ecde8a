//! Micro benches of the translator: `cargo bench -p capi-translate`. What the whole proxy costs is `cargo xtask bench
//! proxy`'s business.

use std::hint::black_box;

use api::group::CapiTypes;
use capi_translate::Rules;
use capi_translate::body::{self, Plan, Translator};
use capi_translate::target::Target;
use divan::Bencher;
use divan::counter::BytesCount;
use http::{Method, StatusCode};

/// A Machine as it is stored: seven names must change.
const MACHINE: &str = include_str!("machine.json");
/// The pieces in which a TLS connection brings a long body.
const PIECE: usize = 16 * 1024;
const MACHINES: &str = "/apis/cluster.x-k8s.io/v1beta2/namespaces/clusters-workload-a/machines";
const NODES: &str = "/api/v1/nodes";

fn main() {
    divan::main();
}

/// The small and frequent case: reading one object.
#[divan::bench]
fn response_of_one_machine(bencher: Bencher) {
    let responses = Responses::new(&format!("{MACHINES}/m"), MACHINE.trim_end());
    bencher
        .counter(responses.size())
        .bench_local(|| responses.whole());
}

/// A watch event, as it arrives: in one piece, through a translator of the lifetime of the watch.
#[divan::bench]
fn watch_event(bencher: Bencher) {
    let event = format!(
        "{{\"type\":\"MODIFIED\",\"object\":{}}}\n",
        MACHINE.trim_end()
    );
    let responses = Responses::new(&format!("{MACHINES}?watch=true"), &event);
    let mut translator = responses.translator();
    let mut out = Vec::with_capacity(2 * PIECE);
    bencher.counter(responses.size()).bench_local(|| {
        out.clear();
        translator
            .push(black_box(event.as_bytes()), &mut out)
            .expect("the event is translated");
        out.len()
    });
}

/// A long list, as a stream.
#[divan::bench(args = [1, 10])]
fn list_of_megabytes(bencher: Bencher, megabytes: usize) {
    let responses = Responses::new(MACHINES, &list(MACHINE.trim_end(), megabytes));
    bencher
        .counter(responses.size())
        .bench_local(|| responses.stream());
}

/// A long list in which nothing changes, as a stream and as a whole.
#[divan::bench(args = [Way::Stream, Way::Whole])]
fn list_without_our_names(bencher: Bencher, way: Way) {
    let responses = Responses::new(NODES, &list(&foreign(MACHINE.trim_end()), 1));
    bencher.counter(responses.size()).bench_local(|| match way {
        Way::Stream => responses.stream(),
        Way::Whole => responses.whole(),
    });
}

/// Most merge patches name no group.
#[divan::bench(args = [Names::None, Names::One])]
fn merge_patch(bencher: Bencher, names: Names) {
    let rules = Rules::default();
    let target = Target::parse(&rules, &format!("{MACHINES}/m")).expect("the path is canonical");
    let patch = names.patch();
    let types = Some("application/merge-patch+json");
    bencher.counter(BytesCount::of_str(&patch)).bench_local(|| {
        let plan = body::request(&rules, &target, &Method::PATCH, types);
        let mut translator = translator(plan.expect("a merge patch is translated"));
        translator
            .whole(black_box(patch.as_bytes()))
            .expect("the patch is translated")
    });
}

/// What every request pays before its body: the URL.
#[divan::bench]
fn url(bencher: Bencher) {
    let rules = Rules::default();
    bencher.bench_local(|| {
        let target = Target::parse(&rules, black_box(MACHINES)).expect("the path is canonical");
        target.upstream().len()
    });
}

/// What a start pays once: the rules over the default table.
#[divan::bench]
fn rules() -> Rules {
    Rules::default()
}

/// How a body is handed to the translator.
#[derive(Debug, Clone, Copy)]
enum Way {
    Stream,
    Whole,
}

/// How many names of groups a patch holds.
#[derive(Debug, Clone, Copy)]
enum Names {
    None,
    One,
}

impl Names {
    fn patch(self) -> String {
        let owner = match self {
            Self::None => "",
            Self::One => {
                r#""ownerReferences":[{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"MachineSet","name":"m"}],"#
            }
        };
        let condition = r#"{"lastTransitionTime":"2026-03-04T09:12:31Z","reason":"Ready","status":"True","type":"Ready"}"#;
        let conditions = [condition; 10].join(",");
        format!(
            r#"{{"metadata":{{{owner}"labels":{{"cluster.x-k8s.io/cluster-name":"a"}}}},"status":{{"conditions":[{conditions}]}}}}"#
        )
    }
}

/// One response's body, to be translated again and again.
struct Responses {
    rules: Rules,
    target: Target,
    body: Vec<u8>,
}

impl Responses {
    fn new(path: &str, body: &str) -> Self {
        let rules = Rules::default();
        let target = Target::parse(&rules, path).expect("the path is canonical");
        Self {
            rules,
            target,
            body: body.as_bytes().to_vec(),
        }
    }

    fn size(&self) -> BytesCount {
        BytesCount::of_slice(&self.body)
    }

    fn translator(&self) -> Box<Translator> {
        let plan = body::response(
            &self.rules,
            &self.target,
            StatusCode::OK,
            Some("application/json"),
        );
        translator(plan.expect("JSON is translated"))
    }

    fn whole(&self) -> usize {
        let out = self
            .translator()
            .whole(black_box(&self.body))
            .expect("the body is translated");
        out.map_or(0, |out| out.len())
    }

    fn stream(&self) -> usize {
        let mut translator = self.translator();
        let (mut out, mut length) = (Vec::with_capacity(2 * PIECE), 0);
        for piece in self.body.chunks(PIECE) {
            out.clear();
            translator
                .push(black_box(piece), &mut out)
                .expect("the body is translated");
            length += out.len();
        }
        out.clear();
        translator.finish(&mut out).expect("the body is complete");
        length + out.len()
    }
}

fn translator(plan: Plan) -> Box<Translator> {
    match plan {
        Plan::Translate(translator) => translator,
        Plan::Pass => unreachable!("bodies under an API path are looked at"),
    }
}

/// About so many megabytes of the same item.
fn list(item: &str, megabytes: usize) -> String {
    let items = vec![item; megabytes * 1_000_000 / item.len()].join(",");
    format!("{{\"apiVersion\":\"v1\",\"items\":[{items}],\"kind\":\"List\",\"metadata\":{{}}}}\n")
}

/// The same text without any name of the table, labels included.
fn foreign(text: &str) -> String {
    let rules = Rules::default();
    let pair = rules
        .table()
        .pairs()
        .first()
        .expect("the default table is not empty");
    [CapiTypes::Private, CapiTypes::Standard]
        .iter()
        .fold(text.to_owned(), |text, &types| {
            text.replace(pair.name(types), "machine.openshift.io")
        })
}
