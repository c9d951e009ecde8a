//! What is asked when, and what a pass gets meanwhile. Time is simulated.

use super::super::url::InvalidUrl;
use super::*;

/// A provider whose responses a test sets.
#[derive(Clone)]
struct Fake(Arc<Shared>);

struct Shared {
    /// URL that issues tokens; without it, the provider fails.
    token: Mutex<Option<&'static str>>,
    documents: Mutex<usize>,
    probes: Mutex<usize>,
    /// Providers that respond.
    permits: Semaphore,
}

// === impl Fake ===

impl Fake {
    fn new(permits: usize) -> Self {
        Self(Arc::new(Shared {
            token: Mutex::new(Some("https://t")),
            documents: Mutex::default(),
            probes: Mutex::default(),
            permits: Semaphore::new(permits),
        }))
    }

    fn issues_at(&self, token: Option<&'static str>) {
        *self.0.token.lock().unwrap() = token;
    }

    /// How many documents and probes were requested.
    fn asked(&self) -> (usize, usize) {
        (
            *self.0.documents.lock().unwrap(),
            *self.0.probes.lock().unwrap(),
        )
    }
}

impl Ask for Fake {
    async fn endpoints(&self, _: &Inquiry) -> Result<OpenIdEndpoints, Error> {
        *self.0.documents.lock().unwrap() += 1;
        let _permit = self.0.permits.acquire().await.unwrap();
        let token = *self.0.token.lock().unwrap();
        token.map(endpoints).ok_or(Error::Document)
    }

    async fn supports_passwords(&self, _: &Inquiry, _: &str) -> Result<bool, Error> {
        *self.0.probes.lock().unwrap() += 1;
        Ok(true)
    }
}

fn endpoints(token: &str) -> OpenIdEndpoints {
    OpenIdEndpoints {
        token: token.to_owned(),
        ..OpenIdEndpoints::default()
    }
}

fn challenging(token: &str) -> OpenIdEndpoints {
    OpenIdEndpoints {
        challenge: true,
        ..endpoints(token)
    }
}

fn inquiry(name: &str) -> Inquiry {
    Inquiry {
        name: name.to_owned(),
        source: Source::Issuer("https://sso.example.com".to_owned()),
        client_id: "cluster".to_owned(),
        client_secret: b"secret".to_vec(),
        secret_version: "1".to_owned(),
        needs_probe: true,
        authorities: Vec::new(),
        earlier: None,
    }
}

/// A pass with these providers.
fn update(discovery: &Discovery, fake: &Fake, inquiries: &[Inquiry]) -> Findings {
    discovery.update(inquiries.to_vec(), &Ok(fake.clone()))
}

/// Waits for the next change, and returns what the pass that it triggers gets.
async fn next(discovery: &Discovery, fake: &Fake, inquiries: &[Inquiry]) -> Findings {
    let changed = tokio::time::timeout(Duration::from_secs(1), discovery.changed());
    changed.await.expect("nothing has changed");
    update(discovery, fake, inquiries)
}

/// Lets tasks that are ready run.
async fn settle() {
    tokio::time::advance(Duration::from_millis(1)).await;
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

fn known(name: &str, endpoints: OpenIdEndpoints) -> BTreeMap<String, OpenIdEndpoints> {
    [(name.to_owned(), endpoints)].into()
}

#[tokio::test(start_paused = true)]
async fn endpoints_are_known_to_the_pass_after_the_response() {
    let (discovery, fake) = (Discovery::default(), Fake::new(1));
    let inquiries = [inquiry("sso")];
    assert_eq!(update(&discovery, &fake, &inquiries), Findings::default());
    let found = next(&discovery, &fake, &inquiries).await;
    assert_eq!(found.endpoints, known("sso", challenging("https://t")));
    assert!(found.failures.is_empty());
    assert_eq!(fake.asked(), (1, 1));
    // A provider that is removed is forgotten.
    assert_eq!(update(&discovery, &fake, &[]), Findings::default());
    assert_eq!(update(&discovery, &fake, &inquiries), Findings::default());
}

#[tokio::test(start_paused = true)]
async fn a_document_is_read_again_later_and_the_probe_is_not_repeated() {
    let (discovery, fake) = (Discovery::default(), Fake::new(1));
    let inquiries = [inquiry("sso")];
    update(&discovery, &fake, &inquiries);
    next(&discovery, &fake, &inquiries).await;
    for (after, expected) in [
        (VALID.saturating_sub(Duration::from_secs(1)), (1, 1)),
        (Duration::from_secs(2), (2, 1)),
        (PROBE_VALID, (3, 2)),
    ] {
        tokio::time::advance(after).await;
        update(&discovery, &fake, &inquiries);
        settle().await;
        assert_eq!(fake.asked(), expected, "{after:?}");
    }
    // Another URL is another server.
    fake.issues_at(Some("https://other"));
    tokio::time::advance(VALID).await;
    update(&discovery, &fake, &inquiries);
    let found = next(&discovery, &fake, &inquiries).await;
    assert_eq!(found.endpoints, known("sso", challenging("https://other")));
    assert_eq!(fake.asked(), (4, 3));
}

#[tokio::test(start_paused = true)]
async fn failures_are_reported_and_repeated_ever_later() {
    let (discovery, fake) = (Discovery::default(), Fake::new(1));
    let inquiries = [inquiry("sso")];
    fake.issues_at(None);
    update(&discovery, &fake, &inquiries);
    let found = next(&discovery, &fake, &inquiries).await;
    assert_eq!(found.endpoints, BTreeMap::new());
    assert!(found.failures["sso"].contains("not a discovery document"));
    let mut asked = vec![];
    for _ in 0..30 {
        tokio::time::advance(RETRY.0).await;
        update(&discovery, &fake, &inquiries);
        settle().await;
        asked.push(fake.asked().0);
    }
    // After 30 s, 90 s, 210 s, and then every two minutes.
    let after = |seconds: usize| asked[seconds / 30 - 1];
    assert_eq!(
        [30, 60, 90, 180, 210, 300, 330, 450].map(after),
        [2, 2, 3, 3, 4, 4, 5, 6]
    );
    fake.issues_at(Some("https://t"));
    tokio::time::advance(VALID).await;
    update(&discovery, &fake, &inquiries);
    let found = next(&discovery, &fake, &inquiries).await;
    assert!(found.failures.is_empty() && found.endpoints.contains_key("sso"));
}

#[tokio::test(start_paused = true)]
async fn endpoints_survive_an_outage_of_the_provider() {
    let (discovery, fake) = (Discovery::default(), Fake::new(1));
    let inquiries = [inquiry("sso")];
    update(&discovery, &fake, &inquiries);
    next(&discovery, &fake, &inquiries).await;
    fake.issues_at(None);
    tokio::time::advance(VALID).await;
    update(&discovery, &fake, &inquiries);
    let found = next(&discovery, &fake, &inquiries).await;
    assert_eq!(found.endpoints, known("sso", challenging("https://t")));
    assert!(found.failures.contains_key("sso"));
}

#[tokio::test(start_paused = true)]
async fn a_changed_provider_is_asked_at_once() {
    type Change = fn(&mut Inquiry);
    let changes: [(Change, bool); 5] = [
        (|it| it.client_id = "other".to_owned(), true),
        (|it| it.secret_version = "2".to_owned(), true),
        (|it| it.authorities = b"PEM".to_vec(), true),
        (
            |it| it.source = Source::Issuer("https://other".to_owned()),
            false,
        ),
        (
            |it| it.source = Source::Annotation("https://sso.example.com".to_owned()),
            false,
        ),
    ];
    for (change, is_kept) in changes {
        let (discovery, fake) = (Discovery::default(), Fake::new(1));
        let mut inquiries = [inquiry("sso")];
        update(&discovery, &fake, &inquiries);
        next(&discovery, &fake, &inquiries).await;
        change(&mut inquiries[0]);
        let found = update(&discovery, &fake, &inquiries);
        assert_eq!(found.endpoints.len(), usize::from(is_kept));
        settle().await;
        // The new client is probed, too.
        assert_eq!(fake.asked(), (2, 2));
    }
}

/// The response to an earlier configuration is not used for a later one.
#[tokio::test(start_paused = true)]
async fn a_response_to_an_earlier_configuration_is_dropped() {
    let (discovery, fake) = (Discovery::default(), Fake::new(0));
    update(&discovery, &fake, &[inquiry("sso")]);
    let mut changed = inquiry("sso");
    changed.source = Source::Issuer("https://other".to_owned());
    let inquiries = [changed];
    settle().await;
    update(&discovery, &fake, &inquiries);
    fake.0.permits.add_permits(1);
    let found = next(&discovery, &fake, &inquiries).await;
    assert_eq!(found, Findings::default());
    let found = next(&discovery, &fake, &inquiries).await;
    assert!(found.endpoints.contains_key("sso"));
    assert_eq!(fake.asked(), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn slow_providers_are_limited_and_delay_no_pass() {
    let (discovery, slow) = (Discovery::default(), Fake::new(0));
    let inquiries: Vec<_> = (0..20).map(|i| inquiry(&format!("sso-{i}"))).collect();
    for _ in 0..3 {
        assert_eq!(update(&discovery, &slow, &inquiries), Findings::default());
        settle().await;
        assert_eq!(slow.asked().0, CONCURRENCY);
    }
    slow.0.permits.add_permits(20);
    settle().await;
    settle().await;
    assert_eq!(update(&discovery, &slow, &inquiries).endpoints.len(), 20);
    assert_eq!(slow.asked().0, 20);
}

#[tokio::test(start_paused = true)]
async fn endpoints_from_before_a_restart_are_known_at_once() {
    let (discovery, fake) = (Discovery::default(), Fake::new(1));
    let inquiries = [Inquiry {
        earlier: Some(endpoints("https://before")),
        ..inquiry("sso")
    }];
    let found = update(&discovery, &fake, &inquiries);
    assert_eq!(found.endpoints, known("sso", endpoints("https://before")));
    let found = next(&discovery, &fake, &inquiries).await;
    assert_eq!(found.endpoints, known("sso", challenging("https://t")));
}

#[tokio::test(start_paused = true)]
async fn without_a_tunnel_the_reason_is_reported() {
    let discovery = Discovery::default();
    let missing = || Error::Missing {
        kind: "Secret",
        name: "konnectivity-client".to_owned(),
        key: "tls.crt",
    };
    let inquiries = vec![inquiry("sso")];
    let found = discovery.update::<Fake>(inquiries.clone(), &Err(missing()));
    let expected = "waiting for Secret konnectivity-client with key tls.crt";
    assert_eq!(found.failures["sso"], expected);
    let fake = Fake::new(1);
    update(&discovery, &fake, &inquiries);
    let found = next(&discovery, &fake, &inquiries).await;
    assert!(found.failures.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_is_not_needed_is_not_sent() {
    let (discovery, fake) = (Discovery::default(), Fake::new(1));
    let inquiries = [Inquiry {
        needs_probe: false,
        ..inquiry("sso")
    }];
    update(&discovery, &fake, &inquiries);
    let found = next(&discovery, &fake, &inquiries).await;
    assert_eq!(found.endpoints, known("sso", endpoints("https://t")));
    assert_eq!(fake.asked(), (1, 0));
}

#[test]
fn reasons_are_limited() {
    let object = format!("a\n{}", "b".repeat(2 * MAX_REASON));
    let text = reason(&Error::Object {
        object,
        expected: "c",
    });
    assert_eq!(text.len(), MAX_REASON);
    assert!(text.starts_with("invalid ab"), "{text}");
    let text = reason(&Error::Url {
        field: "issuer",
        problem: InvalidUrl::Local,
    });
    assert!(
        text.starts_with("invalid issuer: the host is a loopback"),
        "{text}"
    );
}
