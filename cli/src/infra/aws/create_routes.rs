//! Creates the routes of a network: route tables, their associations, and the endpoint of S3.

use support::aws::Element;

use super::call::{Call, Calls};
use super::create_network::Subnets;
use super::executor::Executor;
use super::kind::Kind;
use super::network::{self, PUBLIC_ROUTES, S3_ENDPOINT, Zone};

const EVERYWHERE: &str = "0.0.0.0/0";
/// What is new is not known everywhere at once.
const NEW_GATEWAY: [&str; 2] = [
    "InvalidNatGatewayID.NotFound",
    "InvalidRouteTableID.NotFound",
];
const NEW_ROUTES: [&str; 2] = [
    "InvalidRouteTableId.NotFound",
    "InvalidRouteTableID.NotFound",
];

impl<C: Calls> Executor<'_, C> {
    pub(super) async fn private_routes(
        &self,
        vpc: &str,
        zone: &Zone,
        subnet: &str,
        nat: Option<&String>,
    ) -> anyhow::Result<String> {
        let name = network::private_routes(self.scope, &zone.name);
        let table = self.route_table(vpc, &name).await?;
        if let Some(nat) = nat {
            self.route(&table, ["natGatewayId", "NatGatewayId"], nat)
                .await?;
        }
        self.associate(&table, subnet).await?;
        Ok(Kind::RouteTable.id(&table).to_owned())
    }

    pub(super) async fn public_routes(
        &self,
        vpc: &str,
        gateway: &str,
        subnets: &[Subnets],
    ) -> anyhow::Result<String> {
        let table = self
            .route_table(vpc, &self.scope.named(PUBLIC_ROUTES))
            .await?;
        let id = Kind::RouteTable.id(&table).to_owned();
        let call = Kind::RouteTable
            .describe()
            .filter("vpc-id", vpc)
            .filter("association.main", "true");
        let response = self.call(&call).await?;
        let main = Kind::RouteTable.items(&response).first();
        let main = main.filter(|main| Kind::RouteTable.id(main) != id);
        let associations = main.map(|main| main.items("associationSet"));
        let associations = associations.unwrap_or_default();
        let main = associations.iter().find(|it| it.text_at("main") == "true");
        if let Some(main) = main {
            let call = Call::ec2("ReplaceRouteTableAssociation")
                .with("AssociationId", main.text_at("routeTableAssociationId"))
                .with("RouteTableId", &id);
            // After a lost response the association has another identifier.
            self.settle(&call, &["InvalidAssociationID.NotFound"], &NEW_ROUTES)
                .await?;
        }
        self.route(&table, ["gatewayId", "GatewayId"], gateway)
            .await?;
        for subnets in subnets {
            self.associate(&table, &subnets.public).await?;
        }
        Ok(id)
    }

    async fn route_table(&self, vpc: &str, name: &str) -> anyhow::Result<Element> {
        let parameters = [("VpcId", vpc.to_owned())];
        self.ensure(Kind::RouteTable, name, &[], &parameters, &[])
            .await
    }

    /// Has a route table lead to a gateway. Of its names, the first one is that in responses.
    async fn route(
        &self,
        table: &Element,
        [element, parameter]: [&str; 2],
        gateway: &str,
    ) -> anyhow::Result<()> {
        let mut routes = table.items("routeSet").iter();
        let there = routes.find(|it| it.text_at("destinationCidrBlock") == EVERYWHERE);
        let action = match there {
            Some(route) if route.text_at(element) == gateway => return Ok(()),
            Some(_) => "ReplaceRoute",
            None => "CreateRoute",
        };
        let call = Call::ec2(action)
            .with("RouteTableId", Kind::RouteTable.id(table))
            .with("DestinationCidrBlock", EVERYWHERE)
            .with(parameter, gateway);
        self.settle(&call, &["RouteAlreadyExists"], &NEW_GATEWAY)
            .await
    }

    async fn associate(&self, table: &Element, subnet: &str) -> anyhow::Result<()> {
        let mut associated = table.items("associationSet").iter();
        if associated.any(|it| it.text_at("subnetId") == subnet) {
            return Ok(());
        }
        let call = Call::ec2("AssociateRouteTable")
            .with("RouteTableId", Kind::RouteTable.id(table))
            .with("SubnetId", subnet);
        self.settle(&call, &["Resource.AlreadyAssociated"], &NEW_ROUTES)
            .await
    }

    pub(super) async fn s3_endpoint(&self, vpc: &str, tables: &[String]) -> anyhow::Result<()> {
        let kind = Kind::VpcEndpoint;
        let numbered: Vec<_> = (1..=tables.len())
            .map(|it| format!("RouteTableId.{it}"))
            .collect();
        let service = format!("com.amazonaws.{}.s3", self.scope.region);
        let mut parameters = vec![
            ("VpcId", vpc.to_owned()),
            ("VpcEndpointType", "Gateway".to_owned()),
            ("ServiceName", service),
        ];
        let named = numbered
            .iter()
            .map(String::as_str)
            .zip(tables.iter().cloned());
        parameters.extend(named);
        let name = self.scope.named(S3_ENDPOINT);
        let endpoint = self
            .ensure(kind, &name, &[], &parameters, &NEW_ROUTES)
            .await?;
        let there: Vec<_> = endpoint
            .items("routeTableIdSet")
            .iter()
            .map(|it| &it.text)
            .collect();
        let missing: Vec<_> = tables
            .iter()
            .filter(|table| !there.contains(table))
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        let call = Call::ec2("ModifyVpcEndpoint")
            .with("VpcEndpointId", kind.id(&endpoint))
            .list("AddRouteTableId", missing);
        self.settle(&call, &[], &NEW_ROUTES).await
    }
}
