//! Every kind there and back, with the stock backend itself as the oracle (C04).

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::backend::Backends;
use crate::ground::Ground;
use crate::random::Random;
use crate::reviews::{Answer, Webhook, private, to_private};

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

pub(crate) async fn of_every_kind(ground: &Ground, crds: &[Value]) -> Result<Compared> {
    let shim = ground.shim()?;
    let mut compared = Compared::default();
    for crd in crds {
        let kind = crd["spec"]["names"]["kind"].as_str().unwrap_or_default();
        let group = crd["spec"]["group"].as_str().unwrap_or_default();
        let (Some(old), Some(_)) = (version(crd, OLD), version(crd, NEW)) else {
            continue;
        };
        let Ok(stock) = stock(ground, &ground.backends, group) else {
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

fn stock(ground: &Ground, backends: &Backends, group: &str) -> Result<Webhook> {
    let url = backends.of(group)?.url();
    Webhook::new(&url, &ground.authority())
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
        ensure!(up_again == up, "going down and up changes objects");
        let (down_again, fourth) = self.both(&up_again, OLD).await.context("down again")?;
        ensure!(down_again == down, "going up and down changes objects");
        Ok(first + second + third + fourth)
    }

    /// What the stock backend makes of standard objects, once the shim has made the same of their private twins.
    async fn both(&self, objects: &[Value], version: &str) -> Result<(Vec<Value>, usize)> {
        let standard = format!("{}/{version}", self.group);
        let twins: Vec<Value> = objects.iter().map(private).collect();
        let desired = to_private(&format!(":\"{standard}\""));
        let desired = desired.trim_matches([':', '"']);
        let expected: Answer = self
            .stock
            .convert(objects, &standard)
            .await
            .context("the stock backend")?;
        let found = self
            .shim
            .convert(&twins, desired)
            .await
            .context("the shim")?;
        let wanted = to_private(expected.bytes());
        if found.bytes() != wanted {
            let at = found.bytes().bytes().zip(wanted.bytes());
            let at = at.take_while(|(a, b)| a == b).count().saturating_sub(80);
            anyhow::bail!(
                "the shim's bytes differ:\n{:.240}\nand not\n{:.240}",
                found.bytes().get(at..).unwrap_or_default(),
                wanted.get(at..).unwrap_or_default()
            );
        }
        Ok((expected.objects(), wanted.len()))
    }
}
