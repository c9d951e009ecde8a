//! Writers: they change, delete and create objects, straight at the server, several at a time.

use anyhow::{Result, ensure};
use api::group::CapiTypes;
use serde_json::{Value, json};
use testbed::client::{ApiClient, Patch, status_code};
use tokio::task::JoinSet;

use crate::fidelity::fixture::{claim, collection};
use crate::fidelity::random::Random;

/// Objects; each belongs to one writer, which alone creates and deletes it. All are changed by all.
const OBJECTS: u64 = 32;
const WRITERS: u64 = 8;
/// One write in this many deletes an object and creates it again.
const REBIRTHS: u64 = 20;
/// The text that makes up most of an event.
const TEXT: usize = 300;

/// Creates all objects.
pub(crate) async fn prepare(admin: &ApiClient) -> Result<()> {
    for object in 0..OBJECTS {
        admin
            .create(
                &collection(CapiTypes::Private),
                &claim(CapiTypes::Private, &name(object), "new"),
            )
            .await?;
    }
    Ok(())
}

/// Makes this many changes; gives the version of the last one.
pub(crate) async fn write(admin: &ApiClient, changes: u64, random: &mut Random) -> Result<u64> {
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let (admin, random) = (admin.clone(), random.split());
        writers.spawn(work(admin, writer, changes / WRITERS, random));
    }
    let mut last = 0;
    while let Some(version) = writers.join_next().await {
        last = last.max(version??);
    }
    Ok(last)
}

/// One writer's share.
async fn work(admin: ApiClient, writer: u64, changes: u64, mut random: Random) -> Result<u64> {
    let mut last = 0;
    let mut made = 0;
    while made < changes {
        let response = if random.below(REBIRTHS) == 0 {
            made += 1;
            Some(rebirth(&admin, writer + WRITERS * random.below(OBJECTS / WRITERS)).await?)
        } else {
            change(&admin, random.below(OBJECTS), &mut random).await?
        };
        if let Some(object) = response {
            made += 1;
            last = last.max(version(&object)?);
        }
    }
    Ok(last)
}

async fn rebirth(admin: &ApiClient, object: u64) -> Result<Value> {
    let path = format!("{}/{}", collection(CapiTypes::Private), name(object));
    admin.delete(&path).await?;
    admin
        .create(
            &collection(CapiTypes::Private),
            &claim(CapiTypes::Private, &name(object), "reborn"),
        )
        .await
}

/// Nothing if the object is not there just now.
async fn change(admin: &ApiClient, object: u64, random: &mut Random) -> Result<Option<Value>> {
    let path = format!("{}/{}", collection(CapiTypes::Private), name(object));
    let text = format!("{:0width$}", random.below(u64::MAX), width = TEXT);
    let desired = json!({ "metadata": { "annotations": { "text": text } } });
    match admin.patch(&path, Patch::Merge, &desired).await {
        Ok(object) => Ok(Some(object)),
        Err(error) if matches!(status_code(&error), Some(404 | 409)) => Ok(None),
        Err(error) => Err(error),
    }
}

fn name(object: u64) -> String {
    format!("o{object}")
}

fn version(object: &Value) -> Result<u64> {
    let version = object["metadata"]["resourceVersion"]
        .as_str()
        .unwrap_or_default();
    ensure!(
        !version.is_empty(),
        "a response has no version: {object:.200}"
    );
    Ok(version.parse()?)
}
