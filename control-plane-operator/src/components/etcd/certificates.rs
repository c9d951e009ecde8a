//! The authorities and certificates of etcd's members and of its clients.

use control_plane_component::Context;
use control_plane_component::certificate::Usage::{Both, Client};
use control_plane_component::certificate::{Authority, Form, Leaf, authority, leaf};
use control_plane_component::names::{pods, service_and_localhost};

const SIGNER: Authority = authority("etcd-signer", "etcd-signer").trusted_in(&["etcd-ca"]);
const METRICS_SIGNER: Authority =
    authority("etcd-metrics-signer", "etcd-metrics-signer").trusted_in(&["etcd-metrics-ca"]);

/// Certificate authorities of managed etcd.
pub(super) fn authorities(context: &Context<'_>) -> Vec<Authority> {
    if !context.is_etcd_managed() {
        return Vec::new();
    }
    vec![SIGNER, METRICS_SIGNER]
}

/// Certificates of managed etcd.
pub(super) fn all(context: &Context<'_>) -> Vec<Leaf> {
    if !context.is_etcd_managed() {
        return Vec::new();
    }
    let members = || pods(context, "etcd-discovery");
    let addresses = ["127.0.0.1", "::1"].map(str::to_owned);
    vec![
        leaf(
            "etcd-client-tls",
            SIGNER.secret,
            "etcd-client",
            "kubernetes",
            Client,
        )
        .form(Form::Named("etcd-client")),
        leaf(
            "etcd-server-tls",
            SIGNER.secret,
            "etcd-server",
            "kubernetes",
            Both,
        )
        .names(service_and_localhost(context, "etcd-client"))
        .names(members())
        .form(Form::Named("server")),
        leaf(
            "etcd-peer-tls",
            SIGNER.secret,
            "etcd-discovery",
            "kubernetes",
            Both,
        )
        .names(members())
        .names(addresses)
        .form(Form::Named("peer")),
        leaf(
            "etcd-metrics-client-tls",
            METRICS_SIGNER.secret,
            "etcd-metrics-client",
            "kubernetes",
            Client,
        )
        .form(Form::Named("etcd-client")),
    ]
}
