//! The places that hold a group, as a trie over field names.
//!
//! A [`Node`] is a position in a document; [`Node::child`] follows a field, arrays are transparent (an element is
//! at the node of its array). The URL, which selects the root, and the names of the fields above a string decide;
//! no decision waits for a later sibling.

/// What a string at a place is, and so how it is swapped (see [`super::name`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// `group/version`.
    ApiVersion,
    /// A bare group.
    Group,
    /// `<label>.<group>`: the name of a CRD or of an APIService.
    Qualified,
    /// `count/<resource>.<group>`: a key of a ResourceQuota.
    QuotaKey,
    /// Free text of the server.
    Text,
    /// The `kind` of a root: never swapped, but it identifies a `metav1.Status`.
    Kind,
    /// `/apis/<group>/...`: a key of `paths` in an OpenAPI document.
    OpenApiPath,
    /// `apis/<group>/<version>`: a key of `paths` in the OpenAPI v3 index.
    OpenApiIndexKey,
    /// `/openapi/v3/apis/<group>/<version>?hash=<hash>`.
    ServerRelativeUrl,
    /// `<reversed group>.<version>.<Kind>`: the name of an OpenAPI schema.
    SchemaName,
    /// `#/components/schemas/<schema name>` or `#/definitions/<schema name>`.
    SchemaRef,
    /// `<verb><CamelGroup><Version>...`.
    OperationId,
    /// `<camelGroup>_<version>`.
    Tag,
}

/// What a resource's objects hold beyond the places that every object has, by the URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shape {
    /// Nothing special: custom resources and most built-in kinds.
    Plain,
    /// Cluster and ClusterClass: `variables` holds the user's own values.
    Topology,
    /// Secret and ConfigMap: `data` is the user's.
    Data,
    /// CustomResourceDefinition.
    Crd,
    /// APIService.
    ApiService,
    /// Role and ClusterRole.
    Rbac,
    /// Validating- and MutatingWebhookConfiguration.
    Webhooks,
    /// The SubjectAccessReview family.
    AccessReview,
    /// SelfSubjectRulesReview.
    RulesReview,
    /// Validating- and MutatingAdmissionPolicy and their bindings.
    AdmissionPolicy,
    /// FlowSchema.
    FlowSchema,
    /// ResourceQuota.
    Quota,
    /// StorageVersionMigration.
    StorageMigration,
}

/// The annotation in which kubectl, and the API server after a server-side apply by kubectl, keep the applied object.
const LAST_APPLIED: &[u8] = b"kubectl.kubernetes.io/last-applied-configuration";

/// A position in a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Node {
    /// Below here nothing is a place: the deny list.
    Opaque,
    /// `annotations`: the user's own, but for the one that the API server writes, with the names that it knows.
    Annotations,
    /// Any object: only the places that every object has.
    Generic,
    /// As [`Node::Generic`], inside a Cluster or ClusterClass.
    TopologyGeneric,
    /// A value that is swapped when it is a string, or an array of strings.
    Value(Action),
    /// The root of a response or of a request: an object, a list or a Table of this shape.
    Document(Shape),
    /// The root of one event of a watch.
    WatchEvent(Shape),
    /// One object.
    Object(Shape),
    /// `metadata` of an object with a name that is qualified by a group.
    QualifiedMetadata,
    /// `rows` of a Table.
    TableRows(Shape),
    /// `spec` or `status`, where the shape says more than [`Node::Generic`].
    Body(Shape),
    /// One rule of RBAC, of a webhook, of an admission policy, of a FlowSchema.
    Rule,
    /// `spec.matchConstraints` or `spec.matchResources` of an admission policy.
    MatchResources,
    /// `spec.resourceAttributes` of an access review.
    ResourceAttributes,
    /// A map with names of quotas as keys.
    QuotaMap,
    /// `metav1.Status`; whether its `details.name` is qualified depends on the URL.
    Status(Shape),
    /// `details` of a `metav1.Status`.
    StatusDetails(Shape),
    /// One of `causes`.
    StatusCause,
    /// An object with a `group` field: a GroupVersionKind or GroupVersionResource.
    GroupKind,
    /// The root of AdmissionReview.
    AdmissionReview,
    /// `request` of an AdmissionReview.
    AdmissionRequest,
    /// The root of ConversionReview.
    ConversionReview,
    /// `request` or `response` of a ConversionReview.
    ConversionBody,
    /// Any document below `/api` and `/apis` that describes groups and resources.
    Discovery,
    /// The index of OpenAPI v3.
    OpenApiIndex,
    /// `paths` of the index.
    OpenApiIndexPaths,
    /// One entry of the index.
    OpenApiIndexEntry,
    /// The root of an OpenAPI document, version 2 or 3.
    OpenApi,
    /// `paths` of an OpenAPI document.
    OpenApiPaths,
    /// `definitions` or `components.schemas`.
    OpenApiSchemas,
    /// `properties` of a schema: the keys are the user's.
    OpenApiProperties,
    /// Anywhere else in an OpenAPI document.
    OpenApiGeneric,
}

type Entries = &'static [(&'static [u8], Node)];

// === impl Node ===

impl Node {
    /// The position of the field `key` (decoded) of the object at this position.
    #[inline]
    pub fn child(self, key: &[u8]) -> Self {
        match self {
            Self::Opaque => Self::Opaque,
            Self::Generic => generic(key, Self::Generic),
            Self::TopologyGeneric => topology(key),
            _ => self.special_child(key),
        }
    }

    /// The same as [`Node::child`], but none where the field names themselves are translated.
    #[inline]
    pub(crate) fn plain_child(self, key: &[u8]) -> Option<Self> {
        match self {
            Self::Opaque => Some(self),
            _ if self.key_action().is_some() => None,
            _ => Some(self.child(key)),
        }
    }

    /// What a string at this position is.
    #[inline]
    pub fn action(self) -> Option<Action> {
        match self {
            Self::Value(action) => Some(action),
            _ => None,
        }
    }

    /// What the field names of the object at this position are.
    #[inline]
    pub fn key_action(self) -> Option<Action> {
        match self {
            Self::QuotaMap => Some(Action::QuotaKey),
            Self::OpenApiIndexPaths => Some(Action::OpenApiIndexKey),
            Self::OpenApiPaths => Some(Action::OpenApiPath),
            Self::OpenApiSchemas => Some(Action::SchemaName),
            _ => None,
        }
    }

    fn special_child(self, key: &[u8]) -> Self {
        let listed = self.entries().iter().find(|(name, _)| *name == key);
        listed.map_or_else(|| self.fallback(key), |&(_, node)| node)
    }

    /// Where fields lead that [`Node::entries`] does not list.
    fn fallback(self, key: &[u8]) -> Self {
        match self {
            Self::Opaque | Self::Annotations => Self::Opaque,
            Self::TopologyGeneric | Self::Object(Shape::Topology) => topology(key),
            Self::Document(shape) => document(shape, key),
            Self::WatchEvent(shape) if key == b"object" => Self::Document(shape),
            Self::TableRows(shape) => table_row(shape, key),
            Self::WatchEvent(_) | Self::QuotaMap | Self::Status(_) => Self::Opaque,
            Self::Discovery => Self::Discovery,
            Self::OpenApiIndexPaths => Self::OpenApiIndexEntry,
            Self::OpenApiPaths
            | Self::OpenApiSchemas
            | Self::OpenApiProperties
            | Self::OpenApi
            | Self::OpenApiGeneric
            | Self::Value(Action::Tag | Action::OperationId | Action::SchemaRef) => {
                Self::OpenApiGeneric
            }
            Self::Generic
            | Self::Value(_)
            | Self::Object(_)
            | Self::QualifiedMetadata
            | Self::Body(_)
            | Self::Rule
            | Self::MatchResources
            | Self::ResourceAttributes
            | Self::StatusDetails(_)
            | Self::StatusCause
            | Self::GroupKind
            | Self::AdmissionReview
            | Self::AdmissionRequest
            | Self::ConversionReview
            | Self::ConversionBody
            | Self::OpenApiIndex
            | Self::OpenApiIndexEntry => generic(key, Self::Generic),
        }
    }

    fn entries(self) -> Entries {
        match self {
            Self::Object(shape) => object_entries(shape),
            Self::Body(shape) => body_entries(shape),
            Self::Annotations => &[(LAST_APPLIED, Node::Value(Action::Text))],
            Self::QualifiedMetadata => &[(b"name", Node::Value(Action::Qualified))],
            Self::Rule => &[
                (b"apiGroups", Node::Value(Action::Group)),
                (b"resourceNames", Node::Value(Action::Qualified)),
                (b"rules", Node::Rule),
                (b"resourceRules", Node::Rule),
            ],
            Self::MatchResources => &[
                (b"resourceRules", Node::Rule),
                (b"excludeResourceRules", Node::Rule),
            ],
            Self::ResourceAttributes => &[
                (b"group", Node::Value(Action::Group)),
                (b"name", Node::Value(Action::Qualified)),
            ],
            Self::Status(shape) => status_entries(shape),
            Self::StatusDetails(shape) => status_details_entries(shape),
            Self::StatusCause => &[(b"message", Node::Value(Action::Text))],
            Self::GroupKind => &[(b"group", Node::Value(Action::Group))],
            Self::AdmissionReview => &[(b"request", Node::AdmissionRequest)],
            Self::AdmissionRequest => &[
                (b"kind", Node::GroupKind),
                (b"resource", Node::GroupKind),
                (b"requestKind", Node::GroupKind),
                (b"requestResource", Node::GroupKind),
            ],
            Self::ConversionReview => &[
                (b"request", Node::ConversionBody),
                (b"response", Node::ConversionBody),
            ],
            Self::ConversionBody => &[(b"desiredAPIVersion", Node::Value(Action::ApiVersion))],
            Self::Discovery => DISCOVERY,
            Self::OpenApiIndex => &[(b"paths", Node::OpenApiIndexPaths)],
            Self::OpenApiIndexEntry => {
                &[(b"serverRelativeURL", Node::Value(Action::ServerRelativeUrl))]
            }
            Self::OpenApi => &[
                (b"paths", Node::OpenApiPaths),
                (b"definitions", Node::OpenApiSchemas),
                (b"schemas", Node::OpenApiSchemas),
                (b"components", Node::OpenApi),
            ],
            Self::OpenApiGeneric => &[
                (b"$ref", Node::Value(Action::SchemaRef)),
                (b"x-kubernetes-group-version-kind", Node::GroupKind),
                (b"operationId", Node::Value(Action::OperationId)),
                (b"tags", Node::Value(Action::Tag)),
                (b"properties", Node::OpenApiProperties),
            ],
            _ => &[],
        }
    }
}

/// Legacy documents (`groups`, `versions`, `resources`) and aggregated ones (`items`) share one node: a resource's
/// `name` is never a group's, and the other fields do not collide.
const DISCOVERY: Entries = &[
    (b"name", Node::Value(Action::Group)),
    (b"group", Node::Value(Action::Group)),
    (b"groupVersion", Node::Value(Action::ApiVersion)),
];

fn object_entries(shape: Shape) -> Entries {
    match shape {
        Shape::Plain | Shape::Topology => &[],
        Shape::Data => &[
            (b"data", Node::Opaque),
            (b"stringData", Node::Opaque),
            (b"binaryData", Node::Opaque),
        ],
        Shape::Crd => &[
            (b"metadata", Node::QualifiedMetadata),
            (b"spec", Node::Body(Shape::Crd)),
        ],
        Shape::ApiService => &[
            (b"metadata", Node::QualifiedMetadata),
            (b"spec", Node::Body(Shape::ApiService)),
        ],
        Shape::Rbac => &[(b"rules", Node::Rule)],
        Shape::Webhooks => &[(b"webhooks", Node::Rule)],
        Shape::AccessReview => &[
            (b"spec", Node::Body(Shape::AccessReview)),
            (b"status", Node::Body(Shape::AccessReview)),
        ],
        Shape::RulesReview => &[(b"status", Node::Rule)],
        Shape::AdmissionPolicy => &[(b"spec", Node::Body(Shape::AdmissionPolicy))],
        Shape::FlowSchema => &[(b"spec", Node::Rule)],
        Shape::Quota => &[
            (b"spec", Node::Body(Shape::Quota)),
            (b"status", Node::Body(Shape::Quota)),
        ],
        Shape::StorageMigration => &[(b"spec", Node::Body(Shape::StorageMigration))],
    }
}

fn body_entries(shape: Shape) -> Entries {
    match shape {
        Shape::Crd | Shape::ApiService => &[(b"group", Node::Value(Action::Group))],
        Shape::AccessReview => &[
            (b"resourceAttributes", Node::ResourceAttributes),
            (b"reason", Node::Value(Action::Text)),
        ],
        Shape::AdmissionPolicy => &[
            (b"matchConstraints", Node::MatchResources),
            (b"matchResources", Node::MatchResources),
        ],
        Shape::Quota => &[(b"hard", Node::QuotaMap), (b"used", Node::QuotaMap)],
        Shape::StorageMigration => &[(b"resource", Node::GroupKind)],
        Shape::Plain
        | Shape::Topology
        | Shape::Data
        | Shape::Rbac
        | Shape::Webhooks
        | Shape::RulesReview
        | Shape::FlowSchema => &[],
    }
}

/// A list's `items`, a Table's `rows`; otherwise the document is an object.
fn document(shape: Shape, key: &[u8]) -> Node {
    match key {
        b"items" => Node::Object(shape),
        b"rows" => Node::TableRows(shape),
        b"kind" => Node::Value(Action::Kind),
        _ => Node::Object(shape).child(key),
    }
}

/// The first cell of a CRD's or APIService's row is its name; the other cells are never names.
fn table_row(shape: Shape, key: &[u8]) -> Node {
    match (key, shape) {
        (b"object", _) => Node::Object(shape),
        (b"cells", Shape::Crd | Shape::ApiService) => Node::Value(Action::Qualified),
        _ => Node::Opaque,
    }
}

fn status_entries(shape: Shape) -> Entries {
    const MESSAGE: (&[u8], Node) = (b"message", Node::Value(Action::Text));
    match shape {
        Shape::Crd | Shape::ApiService => &[MESSAGE, (b"details", Node::StatusDetails(Shape::Crd))],
        _ => &[MESSAGE, (b"details", Node::StatusDetails(Shape::Plain))],
    }
}

fn status_details_entries(shape: Shape) -> Entries {
    const GROUP: (&[u8], Node) = (b"group", Node::Value(Action::Group));
    const CAUSES: (&[u8], Node) = (b"causes", Node::StatusCause);
    match shape {
        Shape::Crd | Shape::ApiService => {
            &[GROUP, CAUSES, (b"name", Node::Value(Action::Qualified))]
        }
        _ => &[GROUP, CAUSES],
    }
}

/// The places that every object has: any `apiVersion` or `apiGroup` string outside the deny list.
#[inline]
fn generic(key: &[u8], stay: Node) -> Node {
    match key {
        b"apiVersion" => Node::Value(Action::ApiVersion),
        b"apiGroup" => Node::Value(Action::Group),
        b"annotations" => Node::Annotations,
        // The deny list: below these nothing is a place, whatever the object.
        b"fieldsV1" | b"jsonPatches" | b"labels" | b"matchLabels" | b"openAPIV3Schema"
        | b"requestHook" => Node::Opaque,
        _ => stay,
    }
}

fn topology(key: &[u8]) -> Node {
    if key == b"variables" {
        Node::Opaque
    } else {
        generic(key, Node::TopologyGeneric)
    }
}
