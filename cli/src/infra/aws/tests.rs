//! What is created and destroyed, call by call, and what is left when a command is killed at any of them.

mod bastion;
mod interruptions;
mod named_roles;
mod proxy;
mod recovery;
mod roles;
mod shared_vpc;

use std::sync::LazyLock;
use std::time::Duration;

use support::aws::Element;

use super::accounts::PrivateZones;
use super::call::Tags;
use super::fake::{Bucket, Fake, Fault, Zone};
use super::kind::Kind;
use super::proxy::ProxyArgs;
use super::*;
use crate::install::display::Display;

const BASE: &str = "example.com";

fn scope() -> Scope {
    Scope::new("a-x1", "a", "us-east-1", Tags::new()).unwrap()
}

fn executor<'a>(fake: &'a Fake, scope: &'a Scope) -> Executor<'a, Fake> {
    static QUIET: LazyLock<Display> = LazyLock::new(|| Display::new(true));
    Executor {
        calls: fake,
        scope,
        display: &QUIET,
    }
}

/// What one account does.
impl<C: Calls> Executor<'_, C> {
    async fn create_network(&self, request: &NetworkRequest) -> anyhow::Result<NetworkOutput> {
        let accounts = Accounts::new(self, None, PrivateZones::OfVpc);
        accounts.create_network(request).await
    }

    async fn create_identity(&self, request: &IdentityRequest) -> anyhow::Result<IdentityOutput> {
        let accounts = Accounts::new(self, None, PrivateZones::OfVpc);
        accounts.create_identity(request).await
    }

    async fn destroy_network(&self, request: &DestroyRequest) -> anyhow::Result<()> {
        let accounts = Accounts::new(self, None, PrivateZones::OfVpc);
        accounts.destroy_network(request).await
    }

    async fn destroy_identity(&self, limit: Option<Duration>) -> anyhow::Result<()> {
        let accounts = Accounts::new(self, None, PrivateZones::OfVpc);
        accounts.destroy_identity(limit).await
    }

    async fn report_destruction(&self) -> anyhow::Result<()> {
        let accounts = Accounts::new(self, None, PrivateZones::OfVpc);
        accounts.report_destruction().await
    }
}

fn domain() -> Domain {
    Domain::new(BASE, None, "a").unwrap()
}

fn network(zones: &[&str], public_only: bool) -> NetworkRequest {
    let args = VpcArgs {
        zones: zones.iter().map(|&zone| zone.to_owned()).collect(),
        vpc_cidr: "10.0.0.0/16".to_owned(),
        single_nat_gateway: false,
        public_only,
        proxy: ProxyArgs::default(),
    };
    NetworkRequest::new(domain(), &args, None).unwrap()
}

/// It takes long to generate one.
fn key() -> SigningKey {
    static KEY: LazyLock<SigningKey> = LazyLock::new(|| SigningKey::generate().unwrap());
    KEY.clone()
}

/// Creates all, as `create cluster aws` does.
async fn create(fake: &Fake) -> anyhow::Result<(NetworkOutput, IdentityOutput)> {
    let scope = scope();
    let executor = executor(fake, &scope);
    let made = executor.create_network(&network(&["1a"], false)).await?;
    let identity = executor.create_identity(&identity(&made)).await?;
    Ok((made, identity))
}

/// What is asked for after a network.
fn identity(made: &NetworkOutput) -> IdentityRequest {
    IdentityRequest {
        issuer: Issuer::new("a-x1", "us-east-1", None, None).unwrap(),
        resources: Resources {
            public_zone: made.public_zone_id.clone(),
            private_zone: made.private_zone_id.clone(),
            local_zone: made.local_zone_id.clone(),
            kms_key: Some("arn:key".to_owned()),
            auto_node: true,
            shared_vpc: !made.cluster_account_id.is_empty(),
        },
        form: Form::default(),
        key: Some(key()),
    }
}

/// Destroys all, as `destroy cluster aws` does.
async fn destroy(fake: &Fake) -> anyhow::Result<()> {
    let scope = scope();
    let executor = executor(fake, &scope);
    let limit = Some(Duration::from_mins(1));
    let request = DestroyRequest {
        domain: Some(domain()),
        grace_period: limit,
    };
    executor.destroy_network(&request).await?;
    executor.destroy_identity(limit).await
}

/// What there is beside the public zone and NAT gateways that are deleted already.
fn left(fake: &Fake) -> Vec<String> {
    let mut left = fake.state().snapshot();
    left.retain(|line| {
        let is_zone = line.contains("Zone {") && line.contains("vpc: None, others: {}");
        let is_deleted = line.contains("kind: NatGateway") && line.contains("\"deleted\"");
        !is_zone && !is_deleted
    });
    left
}

/// The calls that write, as lines.
fn writes(fake: &Fake) -> Vec<String> {
    let state = fake.state();
    let writes = state.calls.iter().filter(|call| {
        let reads = ["Describe", "List", "Get", "Head"];
        !reads.iter().any(|verb| call.action.starts_with(verb))
    });
    let line = |call: &Call| {
        let parameters = call
            .parameters
            .iter()
            .filter(|(name, _)| !name.starts_with("Tag"));
        let parameters = parameters.map(|(name, value)| format!(" {name}={value}"));
        format!("{}{}", call.action, parameters.collect::<String>())
    };
    writes.map(line).collect()
}

#[tokio::test]
async fn a_network_is_created_by_these_calls() {
    let fake = Fake::with_zone(BASE);
    let scope = scope();
    let executor = executor(&fake, &scope);
    let output = executor.create_network(&network(&[], false)).await.unwrap();
    let expected = [
        "CreateVpc CidrBlock=10.0.0.0/16",
        "ModifyVpcAttribute VpcId=id-0001 EnableDnsSupport.Value=true",
        "ModifyVpcAttribute VpcId=id-0001 EnableDnsHostnames.Value=true",
        "CreateDhcpOptions DhcpConfiguration.1.Key=domain-name DhcpConfiguration.1.Value.1=ec2.internal \
         DhcpConfiguration.2.Key=domain-name-servers DhcpConfiguration.2.Value.1=AmazonProvidedDNS",
        "AssociateDhcpOptions DhcpOptionsId=id-0003 VpcId=id-0001",
        "CreateInternetGateway",
        "AttachInternetGateway InternetGatewayId=igw-0004 VpcId=id-0001",
        "CreateSubnet VpcId=id-0001 CidrBlock=10.0.128.0/20 AvailabilityZone=us-east-1a",
        "CreateSubnet VpcId=id-0001 CidrBlock=10.0.0.0/20 AvailabilityZone=us-east-1a",
        "AllocateAddress Domain=vpc",
        "CreateNatGateway SubnetId=id-0006 AllocationId=id-0007",
        "CreateRouteTable VpcId=id-0001",
        "CreateRoute RouteTableId=id-0009 DestinationCidrBlock=0.0.0.0/0 NatGatewayId=nat-0008",
        "AssociateRouteTable RouteTableId=id-0009 SubnetId=id-0005",
        "CreateRouteTable VpcId=id-0001",
        "ReplaceRouteTableAssociation AssociationId=assoc:id-0002:main RouteTableId=id-0010",
        "CreateRoute RouteTableId=id-0010 DestinationCidrBlock=0.0.0.0/0 GatewayId=igw-0004",
        "AssociateRouteTable RouteTableId=id-0010 SubnetId=id-0006",
        "CreateVpcEndpoint VpcId=id-0001 VpcEndpointType=Gateway ServiceName=com.amazonaws.us-east-1.s3 RouteTableId.1=id-0009 \
         RouteTableId.2=id-0010",
        "CreateHostedZone Name=a.example.com VPCId=id-0001 VPCRegion=us-east-1 CallerReference=id-0001-a.example.com",
        "ChangeTagsForResource Id=Z-0012",
        "CreateHostedZone Name=a.hypershift.local VPCId=id-0001 VPCRegion=us-east-1 \
         CallerReference=id-0001-a.hypershift.local",
        "ChangeTagsForResource Id=Z-0013",
    ];
    let mut found = writes(&fake);
    let records = found
        .iter()
        .filter(|it| it.starts_with("ChangeResourceRecordSets"));
    assert_eq!(records.count(), 2);
    found.retain(|it| !it.starts_with("ChangeResourceRecordSets"));
    assert_eq!(found, expected);
    assert_eq!(output.vpc_id, "id-0001");
    assert_eq!(output.zones[0].subnet_id, "id-0005");
    assert_eq!(output.public_zone_id, "Z0");
    let state = fake.state();
    for item in state.items.values().filter(|it| !it.tags.is_empty()) {
        assert_eq!(item.tags["kubernetes.io/cluster/a-x1"], "owned", "{item:?}");
    }
}

#[tokio::test]
async fn nodes_of_a_public_network_are_in_public_subnets() {
    let fake = Fake::with_zone(BASE);
    let scope = scope();
    let executor = executor(&fake, &scope);
    let request = network(&["1a", "1b"], true);
    let output = executor.create_network(&request).await.unwrap();
    let kinds = |kind: Kind| {
        fake.state()
            .items
            .values()
            .filter(|it| it.kind == kind)
            .count()
    };
    assert_eq!(kinds(Kind::Subnet), 2);
    assert_eq!(kinds(Kind::NatGateway) + kinds(Kind::Address), 0);
    assert!(output.public_only);
    let ids: Vec<_> = output
        .zones
        .iter()
        .map(|zone| zone.subnet_id.as_str())
        .collect();
    let state = fake.state();
    assert!(
        ids.iter()
            .all(|id| state.items[*id].tags.contains_key("karpenter.sh/discovery"))
    );
}

#[tokio::test]
async fn a_second_run_changes_nothing_and_destruction_leaves_nothing() {
    let fake = Fake::with_zone(BASE);
    let first = create(&fake).await.unwrap();
    let snapshot = fake.state().snapshot();
    fake.set_fault(None);
    assert_eq!(create(&fake).await.unwrap(), first);
    assert_eq!(fake.state().snapshot(), snapshot);
    let created: Vec<_> = writes(&fake)
        .into_iter()
        .filter(|it| it.starts_with("Create") || it.starts_with("Allocate"))
        .collect();
    assert!(created.is_empty(), "{created:?}");
    let (_, identity) = first;
    assert_eq!(identity.roles.len(), 7);
    assert_eq!(identity.kms_provider_role_arn, "arn:role/a-x1-kms-provider");
    assert_eq!(identity.karpenter_role_arn, "arn:role/a-x1-karpenter");
    destroy(&fake).await.unwrap();
    assert_eq!(left(&fake), [""; 0]);
}

/// Killed before or after any call, or with a lost response, and run again: the same state, and nothing twice.
#[tokio::test]
async fn creation_continues_where_it_was_interrupted() {
    let account = async || Fake::with_zone(BASE);
    interruptions::is_continued("one account", account, create, |_, _| {}).await;
}

/// The same of a destruction, and of one that follows an interrupted creation.
#[tokio::test]
async fn destruction_leaves_nothing_however_it_was_interrupted() {
    let account = async || Fake::with_zone(BASE);
    interruptions::is_destroyed("one account", account, create, destroy, left, &[]).await;
}

/// The filter of the fake finds those of all clusters.
#[tokio::test]
async fn launch_templates_of_the_cluster_are_deleted() {
    let fake = Fake::with_zone(BASE);
    let (own, other) = (scope(), Scope::new("a-x10", "b", "us-east-1", Tags::new()));
    {
        let mut state = fake.state();
        let templates = [
            ("lt-1", own.tags("a")),
            ("lt-2", other.unwrap().tags("b")),
            ("lt-3", Tags::new()),
        ];
        state
            .templates
            .extend(templates.map(|(id, tags)| (id.to_owned(), tags)));
    }
    destroy(&fake).await.unwrap();
    let state = fake.state();
    let left: Vec<_> = state.templates.keys().collect();
    assert_eq!(left, ["lt-2", "lt-3"]);
}

/// Another cluster in the same account, a zone of its owner, and a bucket with a similar name.
#[tokio::test]
async fn what_belongs_to_others_stays() {
    let fake = Fake::with_zone(BASE);
    let (made, _) = create(&fake).await.unwrap();
    let other = Scope::new("b-x2", "b", "us-east-1", Tags::new()).unwrap();
    let executor = executor(&fake, &other);
    executor
        .create_network(&network(&["1a"], false))
        .await
        .unwrap();
    let record = |name: &str| {
        format!("<ResourceRecordSet><Name>{name}.</Name><Type>A</Type></ResourceRecordSet>")
    };
    {
        let mut state = fake.state();
        let shared = Zone {
            name: "shared.local".to_owned(),
            vpc: Some(made.vpc_id.clone()),
            tags: other.tags("shared.local"),
            ..Zone::default()
        };
        state.zones.insert("Z9".to_owned(), shared);
        let untagged = Zone {
            name: "corporate.example.org".to_owned(),
            vpc: Some(made.vpc_id.clone()),
            ..Zone::default()
        };
        state.zones.insert("Z8".to_owned(), untagged);
        state
            .buckets
            .insert("a-x10-image-registry-1".to_owned(), Bucket::default());
        // The infrastructure is a-x1-image-registry-x.
        state.buckets.insert(
            "a-x1-image-registry-x-oidc".to_owned(),
            Bucket {
                tags: other.tags("b"),
                ..Bucket::default()
            },
        );
        state
            .buckets
            .insert("a-x1-image-registry-1".to_owned(), Bucket::default());
        let public = state.zones.get_mut("Z0").unwrap();
        public.records.insert(record("\\052.apps.a.example.com"));
        public.records.insert(record("\\052.apps.b.example.com"));
    }
    destroy(&fake).await.unwrap();
    let state = fake.state();
    let vpcs = state
        .items
        .values()
        .filter(|it| it.kind == Kind::Vpc)
        .count();
    assert_eq!(vpcs, 1);
    assert!(state.zones.contains_key("Z8") && state.zones.contains_key("Z9"));
    let buckets: Vec<_> = state.buckets.keys().collect();
    let expected = ["a-x1-image-registry-x-oidc", "a-x10-image-registry-1"];
    assert_eq!(buckets, expected);
    let records: Vec<_> = state.zones["Z0"].records.iter().cloned().collect();
    assert_eq!(records, [record("\\052.apps.b.example.com")]);
}

#[tokio::test]
async fn roles_and_networks_of_other_clusters_are_refused() {
    let fake = Fake::with_zone(BASE);
    create(&fake).await.unwrap();
    let other = Scope::new("b-x2", "b", "us-east-1", Tags::new()).unwrap();
    for role in fake.state().roles.values_mut() {
        role.tags = other.tags("role");
    }
    let roles = fake.state().roles.len();
    let error = create(&fake).await.unwrap_err();
    assert!(
        error.to_string().contains("belongs to another cluster"),
        "{error}"
    );
    destroy(&fake).await.unwrap();
    // Those of the other cluster stay.
    assert_eq!(fake.state().roles.len(), roles);
}

#[tokio::test]
async fn without_a_public_zone_nothing_is_created() {
    let fake = Fake::with_zone("other.example.com");
    let error = create(&fake).await.unwrap_err();
    assert!(
        error
            .to_string()
            .contains("no public hosted zone example.com"),
        "{error}"
    );
    assert_eq!(writes(&fake), [""; 0]);
}

#[tokio::test]
async fn an_interrupted_creation_with_another_name_is_found() {
    let fake = Fake::with_zone(BASE);
    let scope = scope();
    let executor = executor(&fake, &scope);
    executor.refuse_other().await.unwrap();
    executor
        .create_network(&network(&["1a"], false))
        .await
        .unwrap();
    let next = Scope::new("a-y2", "a", "us-east-1", Tags::new()).unwrap();
    let executor = self::executor(&fake, &next);
    let error = executor.refuse_other().await.unwrap_err().to_string();
    assert!(error.contains("--infra-id a-x1"), "{error}");
}

#[tokio::test]
async fn documents_are_published_under_the_issuer() {
    let fake = Fake::with_zone(BASE);
    let (_, identity) = create(&fake).await.unwrap();
    let state = fake.state();
    let objects = &state.buckets["a-x1-oidc"].objects;
    let discovery = &objects["a-x1/.well-known/openid-configuration"];
    assert!(discovery.contains(&identity.issuer_url), "{discovery}");
    assert!(objects["a-x1/openid/v1/jwks"].contains("RS256"));
    assert_eq!(objects.len(), 2);
    assert!(state.buckets["a-x1-oidc"].policy.contains("s3:GetObject"));
    let trust = &state.roles["a-x1-openshift-ingress"].trust;
    assert!(
        trust.contains("a-x1-oidc.s3.us-east-1.amazonaws.com/a-x1:sub"),
        "{trust}"
    );
}

#[tokio::test]
async fn responses_of_the_fake_are_those_of_the_kinds() {
    let fake = Fake::default();
    for kind in Kind::ALL {
        let made = fake.call(&kind.create(&[], &Tags::new())).await.unwrap();
        let id = kind.created(&made).to_owned();
        let found = fake.call(&kind.one(&id)).await.unwrap();
        let ids: Vec<_> = kind
            .items(&found)
            .iter()
            .map(|it: &Element| kind.id(it))
            .collect();
        assert_eq!(ids, [id.as_str()], "{kind:?}");
    }
}
