//! Every kind there and back, with the stock backend itself as the oracle (C04).

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::conversion::backend::Backends;
use crate::conversion::fixture::Fixture;
use crate::conversion::random::Random;
use crate::conversion::reviews::{ReviewResponse, Webhook, private, to_private};

/// Objects of each kind.
const OBJECTS: usize = 24;
const OLD: &str = "v1beta1";
const NEW: &str = "v1beta2";

/// How much was compared.
#[derive(Debug, Default)]
pub(crate) struct Compared {
    pub(crate) kinds: usize,
    pub(crate) objects: usize,
    pub(crate) bytes: usize,
}

pub(crate) async fn of_every_kind(fixture: &Fixture, crds: &[Value]) -> Result<Compared> {
    let shim = fixture.shim()?;
    let mut compared = Compared::default();
    for crd in crds {
        let kind = crd["spec"]["names"]["kind"].as_str().unwrap_or_default();
        let group = crd["spec"]["group"].as_str().unwrap_or_default();
        let (Some(old), Some(_)) = (version(crd, OLD), version(crd, NEW)) else {
            continue;
        };
        let Ok(stock) = stock(fixture, &fixture.backends, group) else {
            continue;
        };
        let mut random = Random::new(compared.kinds as u64 + 1);
        let objects: Vec<Value> = (0..OBJECTS)
            .map(|index| random.object(crd, old, &format!("o-{index}")))
            .collect();
        let trip = Trip {
            shim: &shim,
            stock: &stock,
            group,
        };
        compared.bytes += trip
            .go(objects)
            .await
            .with_context(|| format!("{kind} of {group}"))?;
        compared.kinds += 1;
        compared.objects += OBJECTS;
    }
    Ok(compared)
}

fn version<'c>(crd: &'c Value, name: &str) -> Option<&'c Value> {
    let versions = crd["spec"]["versions"].as_array()?;
    versions
        .iter()
        .find(|version| version["name"] == name && version["served"] == true)
}

fn stock(fixture: &Fixture, backends: &Backends, group: &str) -> Result<Webhook> {
    let url = backends.of(group)?.url();
    Webhook::new(&url, &fixture.authority())
}

/// The two ways of one kind.
struct Trip<'t> {
    shim: &'t Webhook,
    stock: &'t Webhook,
    group: &'t str,
}

// === impl Trip ===

impl Trip<'_> {
    /// Up, down, up and down again; the second time nothing is lost any more.
    async fn go(&self, objects: Vec<Value>) -> Result<usize> {
        let (up, first) = self.both(&objects, NEW).await.context("up")?;
        let (down, second) = self.both(&up, OLD).await.context("down")?;
        let (up_again, third) = self.both(&down, NEW).await.context("up again")?;
        is_same(&up, &up_again).context("going down and up changes objects")?;
        let (down_again, fourth) = self.both(&up_again, OLD).await.context("down again")?;
        is_same(&down, &down_again).context("going up and down changes objects")?;
        Ok(first + second + third + fourth)
    }

    /// What the stock backend makes of standard objects, once the shim has made the same of their private counterparts.
    async fn both(&self, objects: &[Value], version: &str) -> Result<(Vec<Value>, usize)> {
        let standard = format!("{}/{version}", self.group);
        let counterparts: Vec<Value> = objects.iter().map(private).collect();
        let desired = to_private(&format!(":\"{standard}\""));
        let desired = desired.trim_matches([':', '"']);
        let expected: ReviewResponse = self
            .stock
            .convert(objects, &standard)
            .await
            .context("the stock backend")?;
        let found = self
            .shim
            .convert(&counterparts, desired)
            .await
            .context("the shim")?;
        let expected_bytes = to_private(expected.bytes());
        if found.bytes() != expected_bytes {
            let at = found.bytes().bytes().zip(expected_bytes.bytes());
            let at = at.take_while(|(a, b)| a == b).count().saturating_sub(80);
            anyhow::bail!(
                "the shim's bytes differ:\n{:.240}\nand not\n{:.240}",
                found.bytes().get(at..).unwrap_or_default(),
                expected_bytes.get(at..).unwrap_or_default()
            );
        }
        Ok((expected.objects(), expected_bytes.len()))
    }
}

fn is_same(before: &[Value], after: &[Value]) -> Result<()> {
    ensure!(
        before.len() == after.len(),
        "{} objects and {}",
        before.len(),
        after.len()
    );
    for (before, after) in before.iter().zip(after) {
        let Some((path, before, after)) = difference(before, after) else {
            continue;
        };
        anyhow::bail!("{path} was {before:.300} and is {after:.300}");
    }
    Ok(())
}

/// The first place in which two values differ, and what is there. Nothing and something empty are the same, as they are
/// to upstream's own tests of conversion: the stock backend does not distinguish them everywhere.
fn difference(before: &Value, after: &Value) -> Option<(String, String, String)> {
    let inner = |place: &str, before: &Value, after: &Value| {
        let (path, before, after) = difference(before, after)?;
        Some((format!("/{place}{path}"), before, after))
    };
    match (before, after) {
        _ if before == after || (is_nothing(before) && is_nothing(after)) => None,
        (Value::Object(old), Value::Object(new)) => {
            let mut fields = old.keys().chain(new.keys());
            fields.find_map(|field| inner(field, &before[field], &after[field]))
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            let mut items = old.iter().zip(new).enumerate();
            items.find_map(|(index, (old, new))| inner(&index.to_string(), old, new))
        }
        (Value::String(old), Value::String(new)) => match (inner_object(old), inner_object(new)) {
            (Some(old), Some(new)) => inner("in the text", &old, &new),
            _ => Some((String::new(), old.clone(), new.clone())),
        },
        _ => Some((String::new(), before.to_string(), after.to_string())),
    }
}

/// The object that a text holds, as the annotation does that keeps what an older version cannot say.
fn inner_object(text: &str) -> Option<Value> {
    let value: Value = serde_json::from_str(text).ok()?;
    value.is_object().then_some(value)
}

/// Nothing, or only places in which something could be.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_nothing),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}
