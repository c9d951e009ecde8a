//! OAuth clients of browsers and of command line tools.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE;
use serde_json::{Value, json};

use super::input::Input;
use super::object::{Desired, Key, Object, bare, manifest};

const API: &str = "oauth.openshift.io/v1";
const RBAC: &str = include_str!("assets/rbac-oauth.yaml");
const BROWSER: &str = "openshift-browser-client";

pub(super) fn build(input: &Input<'_>, desired: &mut Desired) {
    if !input.is_oauth_enabled() {
        return;
    }
    let (host, port) = &input.settings.oauth;
    let page = |page: &str| json!([format!("https://{host}:{port}/oauth/token/{page}")]);
    let mut browser = client(BROWSER, page("display"), false);
    if has_no_secret(input) {
        browser["secret"] = json!(URL_SAFE.encode(&input.random[64..88]));
    }
    let challenging = client("openshift-challenging-client", page("implicit"), true);
    let callbacks = json!(["http://127.0.0.1/callback", "http://[::1]/callback"]);
    let cli = client("openshift-cli-client", callbacks, false);
    desired.extend([browser, challenging, cli].map(Object::merge));
    desired.extend(manifest(RBAC).into_iter().map(Object::enforce));
}

fn client(name: &str, redirects: Value, responds_with_challenges: bool) -> Value {
    let mut value = bare(&Key::new(API, "OAuthClient", "", name));
    value["redirectURIs"] = redirects;
    value["respondWithChallenges"] = json!(responds_with_challenges);
    value["grantMethod"] = json!("auto");
    value
}

fn has_no_secret(input: &Input<'_>) -> bool {
    let live = input.live(API, "OAuthClient", "", BROWSER);
    let secret = live.and_then(|live| live["secret"].as_str());
    secret.is_none_or(str::is_empty)
}
