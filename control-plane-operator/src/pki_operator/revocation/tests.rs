use serde_json::json;

use super::super::fixtures::{at, client, signer};
use super::super::rotation::FORCE;
use super::super::x509::{union, with_signer};
use super::*;

/// The hour of the revocation.
const REVOKED_AT: u32 = 10;

/// Everything that a revocation reads and changes.
#[derive(Debug, Clone)]
struct Model {
    request: Request,
    signer: Stored,
    bundle: Vec<Certificate>,
    total: Vec<Certificate>,
    client: Stored,
    saved: Option<Saved>,
    now: Timestamp,
}

fn stored(pair: Pair) -> Stored {
    let certificate = &pair.certificate;
    let annotations = [certificate.not_before, certificate.not_after];
    Stored {
        annotations: annotations.map(|at| Some(at.to_string())),
        pair: Some(pair),
    }
}

/// A request at its creation, with a signer of hour 0 that is in use.
fn model() -> Model {
    let old = signer(at(0));
    let bundle = vec![old.certificate.clone()];
    Model {
        request: Request {
            name: "r".to_owned(),
            uid: "u".to_owned(),
            generation: Some(1),
            class: "customer-break-glass".to_owned(),
            ..Request::default()
        },
        client: stored(client(&old, at(1))),
        signer: stored(old),
        total: bundle.clone(),
        bundle,
        saved: None,
        now: at(REVOKED_AT),
    }
}

impl Model {
    fn view(&self) -> View<'_> {
        View {
            request: &self.request,
            signer: &self.signer,
            bundle: &self.bundle,
            total: &self.total,
            client: &self.client,
            saved: self.saved.as_ref(),
            now: self.now,
        }
    }

    fn next(&self) -> String {
        describe(&self.view().next())
    }

    /// Carries a step out as the controllers do.
    fn take(&mut self, step: &Step) {
        match step {
            Step::Status(change) => self.request = self.request.changed(change, self.now),
            Step::SaveSigner(_) => self.saved = self.signer.pair.clone().map(Saved::Own),
            Step::ForceSigner => self.signer.annotations[1] = Some(FORCE.to_owned()),
            Step::ForceClient => self.client.annotations[1] = Some(FORCE.to_owned()),
            Step::Prune(bundle) => self.bundle.clone_from(bundle),
            Step::Probe(_) | Step::Wait(_) | Step::Done => panic!("no change: {step:?}"),
        }
    }

    /// What the other controllers do: rotation, and the bundle of all classes.
    fn rotate(&mut self) {
        if self.signer.is_forced() {
            self.signer = stored(signer(self.now));
        }
        let signer = self.signer.pair.clone().unwrap();
        self.bundle = with_signer(&signer.certificate, &self.bundle, self.now);
        if self.client.is_forced() {
            self.client = stored(client(&signer, self.now));
        }
        self.total = union(std::slice::from_ref(&self.bundle));
    }

    fn status_of(&self, type_: &str) -> Option<(&str, &str)> {
        let found = self.request.condition(type_)?;
        Some((&found.status, &found.reason))
    }
}

fn describe(step: &Step) -> String {
    match step {
        Step::Status(change) => {
            let set = change.conditions.iter();
            let set = set.map(|set| format!("{}={} {}", set.type_, set.status, set.reason));
            set.collect::<Vec<_>>().join(", ")
        }
        Step::SaveSigner(_) => "save signer".to_owned(),
        Step::ForceSigner => "force signer".to_owned(),
        Step::ForceClient => "force client".to_owned(),
        Step::Prune(kept) => format!("prune to {}", kept.len()),
        Step::Probe(expect) => format!("probe {expect:?}"),
        Step::Wait(reason) => format!("wait: {reason}"),
        Step::Done => "done".to_owned(),
    }
}

/// Runs until the step with this description comes next.
fn until(expected: &str) -> Model {
    let mut model = model();
    for _ in 0..100 {
        let step = model.view().next();
        if describe(&step).starts_with(expected) {
            return model;
        }
        let step = match step {
            Step::Probe(expect) => model.view().probed(expect, Ok(())),
            step => step,
        };
        if let Step::Wait(_) = step {
            model.now += Duration::from_secs(1);
            model.rotate();
            continue;
        }
        model.take(&step);
    }
    panic!("never came: {expected}");
}

/// The whole course, and what is trusted at each step.
#[test]
fn a_revocation_replaces_the_signer_before_it_is_distrusted() {
    let mut model = model();
    let old = model.signer.pair.clone().unwrap();
    let mut steps = Vec::new();
    for _ in 0..100 {
        let mut step = model.view().next();
        steps.push(describe(&step));
        if step == Step::Done {
            break;
        }
        if let Step::Probe(expect) = step {
            let trusts_old = model.total.contains(&old.certificate);
            assert_eq!(trusts_old, expect == Expect::Both);
            step = model.view().probed(expect, Ok(()));
            steps.push(describe(&step));
        }
        if let Step::Wait(_) = step {
            model.now += Duration::from_secs(1);
            model.rotate();
        } else {
            model.take(&step);
        }
        // The client certificate is always of a trusted signer.
        let client = &model.client.pair.as_ref().unwrap().certificate;
        assert!(
            model.total.iter().any(|signer| client.is_issued_by(signer)),
            "{steps:#?}"
        );
    }
    assert_eq!(
        steps,
        [
            "SignerClassValid=true AsExpected",
            "save signer",
            "RootCertificatesRegenerated=false RootCertificatesStale",
            // In the second of the revocation, a new signer would count as an old one.
            "wait: Waiting for a new signer",
            "force signer",
            "wait: Waiting for a new signer",
            "RootCertificatesRegenerated=true AsExpected, NewCertificatesTrusted=false WaitingForAvailable",
            "probe Both",
            "NewCertificatesTrusted=true AsExpected, LeafCertificatesRegenerated=false LeafCertificatesStale",
            "force client",
            "wait: Waiting for a client certificate of the new signer",
            "prune to 1",
            "LeafCertificatesRegenerated=true AsExpected, PreviousCertificatesRevoked=false WaitingForAvailable",
            "wait: the client CA bundle still contains the old signer",
            "probe OnlyNew",
            "PreviousCertificatesRevoked=true AsExpected",
            "done",
        ]
    );
    let mut types: Vec<_> = model
        .request
        .conditions
        .iter()
        .map(|it| it.type_.as_str())
        .collect();
    types.sort_unstable();
    assert_eq!(types, [LEAVES, TRUSTED, REVOKED, ROOTS, CLASS_VALID]);
    assert!(
        model
            .request
            .conditions
            .iter()
            .all(|it| it.status == "True")
    );
    assert_eq!(model.request.previous, Some(saved_name("r")));
}

#[test]
fn each_state_has_one_next_step() {
    type Change = fn(&mut Model);
    const SIGNER: &str = "force signer";
    const BOTH: &str = "probe Both";
    const LEAF: &str = "force client";
    const ONLY_NEW: &str = "probe OnlyNew";
    let rows: [(&str, &str, Change, &str); 16] = [
        (
            "an unknown class",
            "SignerClassValid",
            |it| it.request.class = "x".into(),
            "SignerClassValid=false SignerClassUnknown",
        ),
        (
            "no class",
            "SignerClassValid",
            |it| it.request.class.clear(),
            "SignerClassValid=false SignerClassUnknown",
        ),
        (
            "no signer",
            "save",
            |it| it.signer = Stored::default(),
            "wait: Waiting for a signer",
        ),
        (
            "a signer of another request is saved",
            SIGNER,
            |it| it.saved = Some(Saved::Foreign),
            "wait: Secret ",
        ),
        (
            "the saved signer is deleted before it is replaced",
            SIGNER,
            |it| it.saved = None,
            "save signer",
        ),
        (
            "the signer was renewed meanwhile",
            SIGNER,
            |it| it.signer = stored(signer(it.now)),
            "RootCertificatesRegenerated=true",
        ),
        (
            "the new signer is not published",
            BOTH,
            |it| drop(it.total.remove(0)),
            "wait: Waiting for the client CA bundle to contain the new signer",
        ),
        (
            "the saved signer is deleted",
            BOTH,
            |it| it.saved = None,
            "wait: Secret ",
        ),
        (
            "no client certificate",
            LEAF,
            |it| it.client = Stored::default(),
            "wait: Waiting for a client certificate",
        ),
        (
            "the client certificate is of the new signer",
            LEAF,
            |it| {
                let signer = it.signer.pair.clone().unwrap();
                it.client = stored(client(&signer, it.now));
            },
            "prune to 1",
        ),
        (
            "the bundle is pruned",
            "prune",
            |it| drop(it.bundle.pop()),
            "LeafCertificatesRegenerated=true",
        ),
        (
            "a renewal of the client certificate is requested",
            LEAF,
            |it| it.client.annotations[1] = Some(FORCE.into()),
            "wait: Waiting for a client certificate of the new signer",
        ),
        (
            "the old signer is published again",
            ONLY_NEW,
            |it| it.total.push(signer(at(1)).certificate),
            "wait: the client CA bundle still contains",
        ),
        (
            "a newer signer is published",
            ONLY_NEW,
            |it| it.total.push(signer(it.now).certificate),
            ONLY_NEW,
        ),
        (
            "the saved signer is deleted before the proof",
            ONLY_NEW,
            |it| it.saved = None,
            "wait: Secret ",
        ),
        (
            "complete, whatever happens later",
            "done",
            |it| it.signer = Stored::default(),
            "done",
        ),
    ];
    for (name, state, change, expected) in rows {
        let mut model = until(state);
        change(&mut model);
        let next = model.next();
        assert!(next.starts_with(expected), "{name}: {next}");
    }
}

/// Signers of the other class have the same bundle of all classes.
#[test]
fn signers_of_another_class_are_not_revoked() {
    let mut model = until("probe OnlyNew");
    let mut other = signer(at(1)).certificate;
    other.common_name = "clusters-a_sre-system-admin-signer@1".to_owned();
    model.total.push(other);
    assert_eq!(model.next(), "probe OnlyNew");
}

#[test]
fn without_a_previous_signer_only_the_new_one_is_proven() {
    let mut model = model();
    let change = Change {
        timestamp: Some(at(0) - Duration::from_secs(1)),
        ..Change::default()
    };
    model.request = model.request.changed(&change, model.now);
    assert_eq!(
        model.next(),
        "RootCertificatesRegenerated=true AsExpected, NewCertificatesTrusted=false WaitingForAvailable"
    );
    let step = model.view().next();
    model.take(&step);
    assert_eq!(model.next(), "probe Both");
    assert_eq!(model.view().signers().unwrap().1, None);
}

#[test]
fn an_unfinished_proof_is_repeated_and_reported_after_ten_minutes() {
    let mut model = until("probe OnlyNew");
    let begun = model
        .request
        .condition(LEAVES)
        .unwrap()
        .last_transition_time
        .0;
    let failed = || Err("Pod b still accepts".to_owned());
    for (minutes, expected) in [
        (0, "wait"),
        (10, "wait"),
        (
            11,
            "PreviousCertificatesRevoked=false RevocationVerificationTimeout",
        ),
    ] {
        model.now = begun + Duration::from_mins(minutes);
        let step = model.view().probed(Expect::OnlyNew, failed());
        assert!(describe(&step).starts_with(expected), "{minutes}: {step:?}");
        if let Step::Status(_) = step {
            model.take(&step);
        }
    }
    let message = &model.request.condition(REVOKED).unwrap().message;
    assert!(message.contains("Pod b still accepts"), "{message}");
    // It is reported once, and completed later.
    let step = model.view().probed(Expect::OnlyNew, failed());
    assert_eq!(describe(&step), "wait: Pod b still accepts");
    let step = model.view().probed(Expect::OnlyNew, Ok(()));
    model.take(&step);
    assert_eq!(model.status_of(REVOKED), Some(("True", AS_EXPECTED)));
    let step = model.view().probed(Expect::Both, failed());
    assert_eq!(describe(&step), "wait: Pod b still accepts");
}

#[test]
fn an_unknown_class_is_reported_once() {
    let mut model = model();
    model.request.class = "x".to_owned();
    let step = model.view().next();
    model.take(&step);
    assert_eq!(model.status_of(CLASS_VALID), Some(("False", CLASS_UNKNOWN)));
    assert!(
        model
            .request
            .condition(CLASS_VALID)
            .unwrap()
            .message
            .contains("customer-break-glass, sre-break-glass")
    );
    assert_eq!(model.next(), "done");
}

#[test]
fn conditions_keep_their_transition_time_while_their_status_is_the_same() {
    let request = model().request;
    let change = |status, reason| conditions([set(ROOTS, status, reason, "m".to_owned())]);
    let first = request.changed(&change(false, ROOTS_STALE), at(1));
    let same = first.changed(&change(false, WAITING), at(2));
    let other = same.changed(&change(true, AS_EXPECTED), at(3));
    let times =
        [&first, &same, &other].map(|it| it.condition(ROOTS).unwrap().last_transition_time.0);
    assert_eq!(times, [at(1), at(1), at(3)]);
    assert_eq!(other.conditions.len(), 1);
    assert_eq!(other.conditions[0].observed_generation, Some(1));
}

#[test]
fn requests_round_trip_through_their_object() {
    let request = until("done").request;
    let object = json!({
        "apiVersion": "certificates.hypershift.openshift.io/v1alpha1",
        "kind": "CertificateRevocationRequest",
        "metadata": { "name": request.name, "uid": request.uid, "generation": request.generation },
        "spec": { "signerClass": request.class },
        "status": request.status(),
    });
    let object = serde_json::from_value(object).unwrap();
    assert_eq!(Request::parse(&object), Some(request));
}

/// The reference names were computed with another implementation: `sha224` read as a number, in base 36.
#[test]
fn saved_names_are_hashes_in_base_36() {
    for (request, expected) in NAMES {
        assert_eq!(saved_name(request), expected, "{request}");
        assert!(expected.len() <= 63);
    }
}

const NAMES: [(&str, &str); 3] = [
    ("r", "1txsbom3g8k0b245uesalfs0dy5055v4zrypdli3vn6v"),
    (
        "revoke-customer",
        "2xoabe3d9t9kgfy1t14r5gxueu9m9hofhg8lmmpnos7s",
    ),
    ("a.b-c", "2aa88nqj0fl3yq5db32ombjgbt4h20n0gzs02bki696s"),
];
