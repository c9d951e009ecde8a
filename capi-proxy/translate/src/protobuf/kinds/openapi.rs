//! Where an `OpenAPI` v2 document holds a group, in the protobuf of gnostic's `OpenAPIv2.proto`.
//!
//! The names are those of the JSON form; extensions are YAML in a string.

use super::Node::{self, Extension, Leaf, Message};
use crate::place::Action;

/// The extension that names a kind's group: an object, or a list of them.
pub(in crate::protobuf) const KIND_EXTENSION: &[u8] = b"x-kubernetes-group-version-kind";
/// `name` of a `NamedAny`.
pub(in crate::protobuf) const EXTENSION_NAME: u32 = 1;
/// `value.yaml` of a `NamedAny`.
pub(in crate::protobuf) static EXTENSION_VALUE: [(u32, Node); 1] = [(2, Message(&ANY))];
static ANY: [(u32, Node); 1] = [(2, Node::Kinds)];

/// `Document`: paths, definitions, parameters, responses.
pub(in crate::protobuf) static DOCUMENT: [(u32, Node); 4] = [
    (8, Message(&PATHS)),
    (9, Message(&SCHEMAS)),
    (10, Message(&NAMED_PARAMETERS)),
    (11, Message(&NAMED_RESPONSES)),
];

static PATHS: [(u32, Node); 1] = [(2, Message(&NAMED_PATH))];
static NAMED_PATH: [(u32, Node); 2] = [(1, Leaf(Action::OpenApiPath)), (2, Message(&PATH_ITEM))];
static PATH_ITEM: [(u32, Node); 9] = [
    (2, Message(&OPERATION)),
    (3, Message(&OPERATION)),
    (4, Message(&OPERATION)),
    (5, Message(&OPERATION)),
    (6, Message(&OPERATION)),
    (7, Message(&OPERATION)),
    (8, Message(&OPERATION)),
    (9, Message(&PARAMETERS_ITEM)),
    (10, Extension),
];
static OPERATION: [(u32, Node); 5] = [
    (1, Leaf(Action::Tag)),
    (5, Leaf(Action::OperationId)),
    (8, Message(&PARAMETERS_ITEM)),
    (9, Message(&RESPONSES)),
    (13, Extension),
];

static PARAMETERS_ITEM: [(u32, Node); 1] = [(1, Message(&PARAMETER))];
static PARAMETER: [(u32, Node); 1] = [(1, Message(&BODY_PARAMETER))];
static BODY_PARAMETER: [(u32, Node); 2] = [(5, Message(&SCHEMA)), (6, Extension)];
static NAMED_PARAMETERS: [(u32, Node); 1] = [(1, Message(&NAMED_PARAMETER))];
static NAMED_PARAMETER: [(u32, Node); 1] = [(2, Message(&PARAMETER))];

static RESPONSES: [(u32, Node); 1] = [(1, Message(&NAMED_RESPONSE_VALUE))];
static NAMED_RESPONSE_VALUE: [(u32, Node); 1] = [(2, Message(&RESPONSE_VALUE))];
static RESPONSE_VALUE: [(u32, Node); 1] = [(1, Message(&RESPONSE))];
static RESPONSE: [(u32, Node); 2] = [(2, Message(&SCHEMA_ITEM)), (5, Extension)];
static NAMED_RESPONSES: [(u32, Node); 1] = [(1, Message(&NAMED_RESPONSE))];
static NAMED_RESPONSE: [(u32, Node); 1] = [(2, Message(&RESPONSE))];

/// `definitions`.
static SCHEMAS: [(u32, Node); 1] = [(1, Message(&NAMED_SCHEMA))];
static NAMED_SCHEMA: [(u32, Node); 2] = [(1, Leaf(Action::SchemaName)), (2, Message(&SCHEMA))];
static SCHEMA_ITEM: [(u32, Node); 1] = [(1, Message(&SCHEMA))];
/// Properties, with names that the user chooses.
static PROPERTIES: [(u32, Node); 1] = [(1, Message(&PROPERTY))];
static PROPERTY: [(u32, Node); 1] = [(2, Message(&SCHEMA))];
static SCHEMA: [(u32, Node); 6] = [
    (1, Leaf(Action::SchemaRef)),
    // Of additional properties and of items, the schema is the first field.
    (21, Message(&SCHEMA_ITEM)),
    (23, Message(&SCHEMA_ITEM)),
    (24, Message(&SCHEMA)),
    (25, Message(&PROPERTIES)),
    (31, Extension),
];
