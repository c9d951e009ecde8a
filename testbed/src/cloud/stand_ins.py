"""Runs moto's server with stand-ins for what it leaves out.

CreateFleet: moto's instances have no security groups, disks and instance profile of their launch template, and leave network
interfaces behind. Karpenter would replace each of them at once, because its security groups differ. Moto also knows no prices,
and takes the first instance type of the request, which is any: Karpenter would replace that by a cheaper one.

ListInstanceProfiles: moto lists the profiles of all paths. Karpenter deletes profiles below its own path that it does not use:
it would delete those of others.

RunInstances: moto leaves the network interfaces behind that EC2 makes with an instance, and deletes with it by default. Its
instances have no security groups if their interfaces have them; the AWS cloud controller manager opens these groups to load
balancers.

DeleteNatGateway: moto leaves the gateway's network interface behind, in a subnet that then seems to be used.

DescribeInstanceTopology: moto does not have it. The AWS cloud controller manager asks for each node, repeatedly if that
fails. EC2 has nothing to say about most instance types.

CreateLoadBalancer, for classic load balancers: moto's have no health check. That of AWS is there from the beginning; the AWS
cloud controller manager reads it, and panics if there is none.

DeleteKeyPair: moto deletes by name only, and does nothing for an identifier.

CreateDhcpOptions: moto ignores tags. A program that is killed before it adds them would not find the options again.
"""

import sys

from moto.core.responses import ActionResult
from moto.ec2.models.fleets import Fleet
from moto.ec2.models.instances import Instance
from moto.ec2.models.nat_gateways import NatGatewayBackend
from moto.ec2.responses import EC2Response
from moto.elb.models import FakeHealthCheck, LoadBalancer
from moto.ec2.responses.dhcp_options import DHCPOptions
from moto.ec2.responses.key_pairs import KeyPairs
from moto.iam.responses import IamResponse
from moto.server import main


def create_on_demand_requests(fleet, weight_to_add):
    """As moto's, with the cheapest instances, which have what their launch template says."""
    fleet.launch_specs.sort(key=price)
    counts, added = fleet.get_launch_spec_counts(weight_to_add)
    for spec, count in counts.items():
        data = template_data(fleet.ec2_backend, spec.launch_template_spec)
        interfaces = data.get("NetworkInterfaces") or [{}]
        reservation = fleet.ec2_backend.run_instances(
            image_id=spec.image_id,
            count=count,
            instance_type=spec.instance_type,
            is_instance_type_default=False,
            key_name=spec.key_name,
            security_group_names=[],
            security_group_ids=interfaces[0].get("Groups") or data.get("SecurityGroupIds") or [],
            nics=[interface(spec.subnet_id)],
            user_data=spec.user_data,
            placement=None,
            fleet_id=fleet.id,
            tags=spec.tag_specifications,
            metadata_options=data.get("MetadataOptions") or {},
            **disks(data),
        )
        for instance in reservation.instances:
            profile = (data.get("IamInstanceProfile") or {}).get("Name")
            if profile:
                fleet.ec2_backend.associate_iam_instance_profile(
                    instance_id=instance.id, iam_instance_profile_name=profile
                )
            fleet.on_demand_instances.append(
                {"id": reservation.id, "instance": instance, "launch_spec": spec}
            )
    fleet.fulfilled_capacity += added


def price(spec):
    """Karpenter tells the price of each instance type as its priority."""
    return float((spec.overrides or {}).get("Priority", "inf"))


def template_data(backend, reference):
    template = backend.get_launch_template(reference["LaunchTemplateId"])
    return template.get_version(reference.get("Version", "$Default")).data


def interface(subnet):
    """The only network interface of an instance, which ends with it."""
    return {"DeviceIndex": 0, "SubnetId": subnet, "DeleteOnTermination": True}


def disks(data):
    """The disks, which end with their instance unless the template says otherwise."""
    mappings = data.get("BlockDeviceMappings") or []
    mappings = [
        {**mapping, "Ebs": {"DeleteOnTermination": True, **mapping["Ebs"]}}
        for mapping in mappings
        if "Ebs" in mapping
    ]
    return {"block_device_mappings": mappings} if mappings else {}


def list_instance_profiles(response):
    """As moto's, with only the profiles below the path that the request names."""
    prefix = response._get_param("PathPrefix", "/")
    profiles = response.backend.get_instance_profiles()
    profiles = [profile for profile in profiles if profile.path.startswith(prefix)]
    return ActionResult({"InstanceProfiles": profiles})


prep_nics = Instance.prep_nics


def prep_nics_that_end_with_it(instance, nic_spec, *rest, **more):
    specs = nic_spec or [{"DeviceIndex": 0}]
    for spec in specs:
        if "NetworkInterfaceId" not in spec:
            spec.setdefault("DeleteOnTermination", True)
    return prep_nics(instance, specs, *rest, **more)


def security_groups(instance):
    """The groups that the instance was given, else those of its first network interface."""
    interface = getattr(instance, "nics", {}).get(0)
    return instance.given_groups or (interface._group_set if interface else [])


def set_security_groups(instance, groups):
    instance.given_groups = groups


delete_nat_gateway = NatGatewayBackend.delete_nat_gateway


def delete_nat_gateway_and_its_interface(backend, nat_gateway_id):
    gateway = delete_nat_gateway(backend, nat_gateway_id)
    backend.enis.pop(gateway._eni.id, None)
    return gateway


def describe_instance_topology(_response):
    """As EC2's for instance types that have no topology."""
    return ActionResult({"Instances": []})


make_load_balancer = LoadBalancer.__init__


def make_load_balancer_with_health_check(balancer, *rest, **more):
    make_load_balancer(balancer, *rest, **more)
    balancer.health_check = FakeHealthCheck(
        timeout="5",
        healthy_threshold="10",
        unhealthy_threshold="2",
        interval="30",
        target=f"TCP:{balancer.listeners[0].instance_port}",
    )


def delete_key_pair(response):
    """As moto's, also by identifier. What does not exist is deleted with success, as in EC2."""
    pairs = response.ec2_backend.key_pairs
    asked = {response._get_param("KeyName"), response._get_param("KeyPairId")} - {None}
    deleted = [pair for pair in pairs.values() if asked & {pair.key_name, pair.id}]
    for pair in deleted:
        del pairs[pair.key_name]
    return ActionResult({"Return": True, "KeyPairId": deleted[0].id if deleted else None})


create_dhcp_options = DHCPOptions.create_dhcp_options


def create_dhcp_options_with_tags(response):
    result = create_dhcp_options(response)
    tags = response._parse_tag_specification("dhcp-options").get("dhcp-options", {})
    result.result["DhcpOptions"].add_tags(tags)
    return result


DHCPOptions.create_dhcp_options = create_dhcp_options_with_tags
KeyPairs.delete_key_pair = delete_key_pair
NatGatewayBackend.delete_nat_gateway = delete_nat_gateway_and_its_interface
Instance.prep_nics = prep_nics_that_end_with_it
Instance.security_groups = property(security_groups, set_security_groups)
Fleet.create_on_demand_requests = create_on_demand_requests
IamResponse.list_instance_profiles = list_instance_profiles
EC2Response.describe_instance_topology = describe_instance_topology
LoadBalancer.__init__ = make_load_balancer_with_health_check

if __name__ == "__main__":
    sys.exit(main())
