//! What EC2 says, from a server on loopback.

use std::path::Path;

use support::testing::{HttpAnswer, HttpServer};

use super::*;

const LARGE: &str = "<?xml version=\"1.0\"?><DescribeInstanceTypesResponse xmlns=\"http://ec2.amazonaws.com/doc/2016-11-15/\">\
    <requestId>r</requestId><instanceTypeSet><item><instanceType>m5.large</instanceType>\
    <vCpuInfo><defaultVCpus>2</defaultVCpus><defaultCores>1</defaultCores></vCpuInfo>\
    <memoryInfo><sizeInMiB>8192</sizeInMiB></memoryInfo></item></instanceTypeSet></DescribeInstanceTypesResponse>";
/// The memory of the graphics processors comes before that of the machine.
const GRAPHICS: &str = "<DescribeInstanceTypesResponse><instanceTypeSet><item>\
    <gpuInfo><gpus><item><count>4</count><memoryInfo><sizeInMiB>16384</sizeInMiB></memoryInfo></item>\
    <item><count>1</count><memoryInfo><sizeInMiB>1</sizeInMiB></memoryInfo></item></gpus>\
    <totalGpuMemoryInMiB>65537</totalGpuMemoryInMiB></gpuInfo>\
    <memoryInfo><sizeInMiB>249856</sizeInMiB></memoryInfo>\
    <vCpuInfo><defaultVCpus>32</defaultVCpus></vCpuInfo></item></instanceTypeSet></DescribeInstanceTypesResponse>";
const EMPTY: &str =
    "<DescribeInstanceTypesResponse><instanceTypeSet/></DescribeInstanceTypesResponse>";

fn capacity(processors: u32, memory: u64, gpus: u32) -> Capacity {
    Capacity {
        processors,
        memory,
        gpus,
    }
}

#[test]
fn processors_and_memory_are_those_of_the_machine() {
    for (response, expected) in [
        (LARGE, Some(capacity(2, 8192, 0))),
        (GRAPHICS, Some(capacity(32, 249_856, 5))),
        (EMPTY, None),
        ("no XML", None),
    ] {
        assert_eq!(read(response), expected, "{response}");
    }
}

/// The credentials of a file, and a server in place of EC2.
async fn ec2(directory: &Path, answers: &[HttpAnswer]) -> (Ec2, HttpServer) {
    let file = directory.join("credentials");
    let keys = "[default]\naws_access_key_id = AKIA\naws_secret_access_key = secret\n";
    std::fs::write(&file, keys).unwrap();
    let server = HttpServer::start(answers).await;
    let endpoints = [Some(server.url.clone()), None];
    (Ec2::with_endpoints(file, endpoints), server)
}

#[tokio::test]
async fn an_instance_type_is_requested_once() {
    let directory = tempfile::tempdir().unwrap();
    let (ec2, server) = ec2(directory.path(), &[(200, &[], LARGE), (200, &[], GRAPHICS)]).await;
    for (instance_type, expected) in [
        ("m5.large", capacity(2, 8192, 0)),
        ("m5.large", capacity(2, 8192, 0)),
        ("p3.8xlarge", capacity(32, 249_856, 5)),
    ] {
        let found = ec2.capacity("eu-west-1", instance_type).await;
        assert_eq!(found, Ok(expected), "{instance_type}");
    }
    assert_eq!(server.lines(), ["POST /", "POST /"]);
    assert_eq!(
        String::from_utf8(server.body(0).to_vec()).unwrap(),
        "Action=DescribeInstanceTypes&Version=2016-11-15&InstanceType.1=m5.large"
    );
    let signature = server.header(0, "authorization").unwrap();
    assert!(
        signature.contains("Credential=AKIA/") && signature.contains("/eu-west-1/ec2/aws4_request"),
        "{signature}"
    );
}

#[tokio::test]
async fn failures_name_the_instance_type_and_the_way_out() {
    let invalid = "<Response><Errors><Error><Code>InvalidInstanceType</Code><Message>arn:aws:sts::1</Message></Error></Errors></Response>";
    let denied = "<Response><Errors><Error><Code>UnauthorizedOperation</Code><Message>arn:aws:sts::1</Message></Error></Errors></Response>";
    let table: [(&str, HttpAnswer, &str); 4] = [
        (
            "eu-west-1",
            (400, &[], invalid),
            "EC2 does not have instance type m9.none in eu-west-1: correct spec.platform.aws.instanceType",
        ),
        (
            "eu-west-1",
            (403, &[], denied),
            "(UnauthorizedOperation): the administrator",
        ),
        ("eu-west-1", (200, &[], EMPTY), "could not be asked about"),
        ("a.example.com/", (200, &[], LARGE), "is not a region"),
    ];
    for (region, answer, expected) in table {
        let directory = tempfile::tempdir().unwrap();
        let (ec2, server) = ec2(directory.path(), &[answer]).await;
        let error = ec2.capacity(region, "m9.none").await.unwrap_err();
        let text = error.to_string();
        assert!(text.contains(expected), "{text}");
        // What AWS says names accounts and roles of the administrators.
        assert!(!text.contains("arn:"), "{text}");
        // It is not repeated at once.
        let requests = server.lines().len();
        assert_eq!(ec2.capacity(region, "m9.none").await, Err(error));
        assert_eq!(server.lines().len(), requests, "{text}");
    }
}
