//! What a hosted cluster admits of its administrator: changes that are tried, and not made.

use anyhow::{Context as _, Result};
use invariants::{Attempt, Change};

use crate::client::{ApiClient, Patch, status_code};

/// Tries all changes, without persisting them.
pub(super) async fn attempts(guest: &ApiClient) -> Result<Vec<Attempt>> {
    let mut attempts = Vec::new();
    for change in Change::ALL {
        let attempt = attempt(guest, change).await;
        attempts.push(attempt.with_context(|| format!("{change:?} cannot be tried"))?);
    }
    Ok(attempts)
}

async fn attempt(guest: &ApiClient, change: Change) -> Result<Attempt> {
    let live = guest.get(change.path()).await?;
    let path = format!("{}?dryRun=All", change.path());
    let answer = guest.patch(&path, Patch::Merge, &change.patch(&live)).await;
    let refusal = match answer {
        Ok(_) => None,
        // A status that is not the request's fault says nothing about what is admitted.
        Err(error) if status_code(&error).is_some_and(|code| (400..500).contains(&code)) => {
            Some(format!("{error:#}"))
        }
        Err(error) => return Err(error),
    };
    Ok(Attempt { change, refusal })
}
