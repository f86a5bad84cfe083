//! Every refusal of the service: its code, its status and its text, in one table.

use std::fmt;

macro_rules! faults {
    ($(
        $(#[$doc:meta])*
        $name:ident $({ $($(#[$of_field:meta])* $field:ident: $ty:ty),+ })? = $status:literal $code:literal $text:literal;
    )*) => {
        /// A refusal, named for its cause.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Fault {
            $($(#[$doc])* $name $({ $($(#[$of_field])* $field: $ty),+ })?,)*
        }

        impl Fault {
            /// The code that clients judge by.
            #[must_use]
            pub const fn code(&self) -> &'static str {
                match self {
                    $(Self::$name { .. } => $code,)*
                }
            }

            /// The status of the answer.
            #[must_use]
            pub const fn status(&self) -> u16 {
                match self {
                    $(Self::$name { .. } => $status,)*
                }
            }
        }

        /// The text for people, without the request's id and time.
        impl fmt::Display for Fault {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$name $({ $($field),+ })? => write!(formatter, $text),)*
                }
            }
        }
    };
}

faults! {
    // Resources.
    /// No such entity, or no such table to delete.
    ResourceNotFound = 404 "ResourceNotFound" "The specified resource does not exist.";
    /// No such table.
    TableNotFound = 404 "TableNotFound" "The table specified does not exist.";
    /// An entity with the keys is there.
    EntityAlreadyExists = 409 "EntityAlreadyExists" "The specified entity already exists.";
    /// A table of the name is there.
    TableAlreadyExists = 409 "TableAlreadyExists" "The table specified already exists.";
    /// The table is still being deleted.
    TableBeingDeleted = 409 "TableBeingDeleted" "The specified table is being deleted. Try operation later.";
    /// The entity has another ETag.
    UpdateConditionNotSatisfied = 412 "UpdateConditionNotSatisfied" "The update condition specified in the request was not satisfied.";

    // Entities.
    /// A key is missing.
    PropertiesNeedValue = 400 "PropertiesNeedValue" "The values are not specified for all properties in the entity.";
    /// More than 252 properties.
    TooManyProperties = 400 "TooManyProperties" "The entity contains more properties than allowed. Each entity can include up to 252 properties to store data. Each entity also has 3 system properties.";
    /// A name of more than 255 characters.
    PropertyNameTooLong = 400 "PropertyNameTooLong" "The property name exceeds the maximum allowed length (255).";
    /// A name that is no C# identifier.
    PropertyNameInvalid = 400 "PropertyNameInvalid" "The property name is invalid.";
    /// A value above 64 KiB.
    PropertyValueTooLarge = 400 "PropertyValueTooLarge" "The property value exceeds the maximum allowed size (64KB). If the property value is a string, it is UTF-16 encoded and the maximum number of characters should be 32K or less.";
    /// A key above 1,024 units of UTF-16.
    KeyValueTooLarge = 400 "KeyValueTooLarge" "The key property value exceeds the maximum allowed size (1KB).";
    /// An entity above 1 MiB.
    EntityTooLarge = 400 "EntityTooLarge" "The entity is larger than the maximum allowed size (1MB).";
    /// One name twice.
    DuplicatePropertiesSpecified = 400 "DuplicatePropertiesSpecified" "A property is specified more than one time.";
    /// A value of a type that is not known.
    InvalidValueType = 400 "InvalidValueType" "The value specified is invalid.";

    // Input.
    /// A body or a parameter that cannot be read.
    InvalidInput = 400 "InvalidInput" "An error occurred while processing this request.";
    /// A value that is not allowed.
    InputNotValid = 400 "InvalidInput" "One of the request inputs is not valid.";
    /// A `$filter` that cannot be read.
    Syntax {
        /// Units of UTF-16 up to the end of the word that is wrong.
        position: usize,
        /// The whole filter.
        filter: String
    } = 400 "InvalidInput" "Syntax error at position {position} in '{filter}'.";
    /// An ETag that cannot be read.
    EtagInvalid {
        /// As sent.
        etag: String
    } = 400 "InvalidInput" "The etag value '{etag}' specified in one of the request headers is not valid. Please make sure only one etag value is specified and is valid.";
    /// `If-None-Match` with PUT or DELETE.
    NoneMatchNotAllowed {
        /// `PUT` or `DELETE`.
        method: &'static str
    } = 400 "InvalidInput" "If-None-Match HTTP header cannot be specified for {method} operations.";
    /// A condition on an insert.
    ConditionNotAllowed = 400 "InvalidInput" "If-Match or If-None-Match headers cannot be specified if the target type does not have etag properties defined.";
    /// Both conditions.
    BothConditions = 400 "InvalidInput" "Both If-Match and If-None-Match HTTP headers cannot be specified at the same time. Please specify either one of the headers or none of them.";
    /// A delete without `If-Match`.
    IfMatchMissing = 400 "MissingRequiredHeader" "An HTTP header that's mandatory for this request is not specified.";
    /// A key with a character that is forbidden.
    OutOfRangeInput = 400 "OutOfRangeInput" "One of the request inputs is out of range.";
    /// A parameter out of its range.
    ParameterOutOfRange {
        /// Its name.
        name: &'static str,
        /// As sent.
        value: String
    } = 400 "OutOfRangeInput" "The '{name}' parameter of value '{value}' is out of range.";
    /// A table's name that is too short or too long.
    NameLengthOutOfRange = 400 "OutOfRangeInput" "The specified resource name length is not within the permissible limits.";
    // The service spells it so.
    /// A table's name with other characters.
    InvalidResourceName = 400 "InvalidResourceName" "The specifed resource name contains invalid characters.";
    /// XML that cannot be read.
    InvalidXmlDocument = 400 "InvalidXmlDocument" "XML specified is not syntactically valid.";
    /// A parameter of the query with a value that is not allowed.
    InvalidQueryParameterValue = 400 "InvalidQueryParameterValue" "Value for one of the query parameters specified in the request URI is invalid.";
    /// A header of another form.
    InvalidHeaderValue = 400 "InvalidHeaderValue" "The value for one of the HTTP headers is not in the correct format.";
    /// A preflight without its headers.
    CorsHeaderMissing = 400 "InvalidHeaderValue" "A required CORS header is not present.";
    /// An address of nothing.
    InvalidUri = 400 "InvalidUri" "The requested URI does not represent any resource on the server.";
    /// An address with other keys than the resource has.
    KeyCountMismatch = 400 "InvalidUri" "The number of keys specified in the URI does not match number of key properties for the resource.";
    /// A body above the limit.
    RequestBodyTooLarge = 413 "RequestBodyTooLarge" "The request body is too large and exceeds the maximum permissible limit.";
    /// `X-HTTP-Method` without POST.
    MethodNotUsingPost = 400 "XMethodNotUsingPost" "The request uses X-HTTP-Method with an HTTP verb other than POST.";
    /// `X-HTTP-Method` with another word.
    MethodIncorrectValue = 400 "XMethodIncorrectValue" "The specified X-HTTP-Method is invalid.";
    /// `X-HTTP-Method` twice.
    MethodIncorrectCount = 400 "XMethodIncorrectCount" "More than one X-HTTP-Method is specified.";

    // Group transactions.
    /// A row twice.
    InvalidDuplicateRow = 400 "InvalidDuplicateRow" "The batch request contains multiple changes with same row key. An entity can appear only once in a batch request.";
    /// Two partition keys or tables.
    CommandsInBatchActOnDifferentPartitions = 400 "CommandsInBatchActOnDifferentPartitions" "All commands in a batch must operate on same entity group.";
    /// More than 100 operations.
    TooManyOperations = 400 "InvalidInput" "The batch request operation exceeds the maximum 100 changes per change set.";

    // What is served.
    /// A body of another format.
    JsonFormatNotSupported = 415 "JsonFormatNotSupported" "JSON format is not supported.";
    /// An Atom body, or Atom asked for.
    AtomFormatNotSupported = 415 "AtomFormatNotSupported" "Atom format is not supported.";
    /// Another type of content.
    MediaTypeNotSupported = 415 "MediaTypeNotSupported" "None of the provided media types are supported";
    /// A method that the resource does not have.
    MethodNotAllowed = 405 "MethodNotAllowed" "The requested method is not allowed on the specified resource.";
    /// A method that the resource does not know.
    UnsupportedHttpVerb = 405 "UnsupportedHttpVerb" "The resource doesn't support specified Http Verb.";
    /// What the service does not have.
    NotImplemented = 501 "NotImplemented" "The requested operation is not implemented on the specified resource.";

    // Who may.
    /// A signature, a time or a token that does not hold.
    AuthenticationFailed = 403 "AuthenticationFailed" "Server failed to authenticate the request. Make sure the value of Authorization header is formed correctly including the signature.";
    /// Nothing that says who asks.
    InvalidAuthenticationInfo = 401 "InvalidAuthenticationInfo" "Server failed to authenticate the request. Please refer to the information in the www-authenticate header.";
    /// A place outside of the keys of a shared access signature.
    AuthorizationFailure = 403 "AuthorizationFailure" "This request is not authorized to perform this operation.";
    /// A permission that a shared access signature lacks.
    AuthorizationPermissionMismatch = 403 "AuthorizationPermissionMismatch" "This request is not authorized to perform this operation using this permission.";
    /// A type of resource that a shared access signature lacks.
    AuthorizationResourceTypeMismatch = 403 "AuthorizationResourceTypeMismatch" "This request is not authorized to perform this operation using this resource type.";
    /// A shared access signature of another service.
    AuthorizationServiceMismatch = 403 "AuthorizationServiceMismatch" "This request is not authorized to perform this operation using this service.";
    /// A shared access signature for https alone.
    AuthorizationProtocolMismatch = 403 "AuthorizationProtocolMismatch" "This request is not authorized to perform this operation using this protocol.";
    /// A shared access signature for other addresses.
    AuthorizationSourceIpMismatch {
        /// The client's address.
        address: std::net::IpAddr
    } = 403 "AuthorizationSourceIPMismatch" "This request is not authorized to perform this operation using this source IP {address}.";
    /// A write to the secondary address.
    InsufficientAccountPermissions = 403 "InsufficientAccountPermissions" "Write operations are not allowed.";
    /// No rule allows what a browser asks for.
    CorsPreflightFailure = 403 "CorsPreflightFailure" "CORS not enabled or no matching rule found for this request.";

    // Load.
    /// The server, or the node in charge of the range, has too much to do.
    ServerBusy = 503 "ServerBusy" "The server is busy.";
    /// The account is above its target.
    AccountBusy = 503 "ServerBusy" "Operations per second is over the account limit.";
    /// The time of the request is over.
    OperationTimedOut = 500 "OperationTimedOut" "Operation could not be completed within the specified time.";
    /// A fault of the server.
    InternalError = 500 "InternalError" "The server encountered an internal error. Please retry the request.";
}

impl std::error::Error for Fault {}

#[cfg(test)]
mod tests {
    use super::*;

    /// The codes, statuses and texts that clients know, row by row.
    #[test]
    #[expect(clippy::too_many_lines, reason = "a table of cases")]
    fn refusals_have_the_codes_and_texts_of_the_service() {
        let syntax = Fault::Syntax {
            position: 7,
            filter: "aaa bbb ccc".to_owned(),
        };
        let etag = Fault::EtagInvalid { etag: "x".to_owned() };
        let range = Fault::ParameterOutOfRange {
            name: "PartitionKey",
            value: "a/b".to_owned(),
        };
        let address = Fault::AuthorizationSourceIpMismatch {
            address: [127, 0, 0, 1].into(),
        };
        let put = Fault::NoneMatchNotAllowed { method: "PUT" };
        for (fault, status, code, text) in [
            (
                Fault::ResourceNotFound,
                404,
                "ResourceNotFound",
                "The specified resource does not exist.",
            ),
            (
                Fault::TableNotFound,
                404,
                "TableNotFound",
                "The table specified does not exist.",
            ),
            (
                Fault::EntityAlreadyExists,
                409,
                "EntityAlreadyExists",
                "The specified entity already exists.",
            ),
            (
                Fault::TableAlreadyExists,
                409,
                "TableAlreadyExists",
                "The table specified already exists.",
            ),
            (
                Fault::TableBeingDeleted,
                409,
                "TableBeingDeleted",
                "The specified table is being deleted. Try operation later.",
            ),
            (
                Fault::UpdateConditionNotSatisfied,
                412,
                "UpdateConditionNotSatisfied",
                "The update condition specified in the request was not satisfied.",
            ),
            (
                Fault::PropertiesNeedValue,
                400,
                "PropertiesNeedValue",
                "The values are not specified for all properties in the entity.",
            ),
            (
                Fault::TooManyProperties,
                400,
                "TooManyProperties",
                "The entity contains more properties than allowed. Each entity can include up to 252 properties to store data. Each entity also has 3 system properties.",
            ),
            (
                Fault::PropertyNameTooLong,
                400,
                "PropertyNameTooLong",
                "The property name exceeds the maximum allowed length (255).",
            ),
            (
                Fault::PropertyNameInvalid,
                400,
                "PropertyNameInvalid",
                "The property name is invalid.",
            ),
            (
                Fault::PropertyValueTooLarge,
                400,
                "PropertyValueTooLarge",
                "The property value exceeds the maximum allowed size (64KB). If the property value is a string, it is UTF-16 encoded and the maximum number of characters should be 32K or less.",
            ),
            (
                Fault::EntityTooLarge,
                400,
                "EntityTooLarge",
                "The entity is larger than the maximum allowed size (1MB).",
            ),
            (
                Fault::DuplicatePropertiesSpecified,
                400,
                "DuplicatePropertiesSpecified",
                "A property is specified more than one time.",
            ),
            (
                Fault::InvalidValueType,
                400,
                "InvalidValueType",
                "The value specified is invalid.",
            ),
            (
                Fault::InvalidInput,
                400,
                "InvalidInput",
                "An error occurred while processing this request.",
            ),
            (
                Fault::InputNotValid,
                400,
                "InvalidInput",
                "One of the request inputs is not valid.",
            ),
            (
                syntax,
                400,
                "InvalidInput",
                "Syntax error at position 7 in 'aaa bbb ccc'.",
            ),
            (
                etag,
                400,
                "InvalidInput",
                "The etag value 'x' specified in one of the request headers is not valid. Please make sure only one etag value is specified and is valid.",
            ),
            (
                put,
                400,
                "InvalidInput",
                "If-None-Match HTTP header cannot be specified for PUT operations.",
            ),
            (
                Fault::ConditionNotAllowed,
                400,
                "InvalidInput",
                "If-Match or If-None-Match headers cannot be specified if the target type does not have etag properties defined.",
            ),
            (
                Fault::BothConditions,
                400,
                "InvalidInput",
                "Both If-Match and If-None-Match HTTP headers cannot be specified at the same time. Please specify either one of the headers or none of them.",
            ),
            (
                Fault::TooManyOperations,
                400,
                "InvalidInput",
                "The batch request operation exceeds the maximum 100 changes per change set.",
            ),
            (
                Fault::OutOfRangeInput,
                400,
                "OutOfRangeInput",
                "One of the request inputs is out of range.",
            ),
            (
                range,
                400,
                "OutOfRangeInput",
                "The 'PartitionKey' parameter of value 'a/b' is out of range.",
            ),
            (
                Fault::NameLengthOutOfRange,
                400,
                "OutOfRangeInput",
                "The specified resource name length is not within the permissible limits.",
            ),
            (
                Fault::InvalidResourceName,
                400,
                "InvalidResourceName",
                "The specifed resource name contains invalid characters.",
            ),
            (
                Fault::InvalidDuplicateRow,
                400,
                "InvalidDuplicateRow",
                "The batch request contains multiple changes with same row key. An entity can appear only once in a batch request.",
            ),
            (
                Fault::CommandsInBatchActOnDifferentPartitions,
                400,
                "CommandsInBatchActOnDifferentPartitions",
                "All commands in a batch must operate on same entity group.",
            ),
            (
                Fault::JsonFormatNotSupported,
                415,
                "JsonFormatNotSupported",
                "JSON format is not supported.",
            ),
            (
                Fault::AtomFormatNotSupported,
                415,
                "AtomFormatNotSupported",
                "Atom format is not supported.",
            ),
            (
                Fault::MediaTypeNotSupported,
                415,
                "MediaTypeNotSupported",
                "None of the provided media types are supported",
            ),
            (
                Fault::MethodNotAllowed,
                405,
                "MethodNotAllowed",
                "The requested method is not allowed on the specified resource.",
            ),
            (
                Fault::UnsupportedHttpVerb,
                405,
                "UnsupportedHttpVerb",
                "The resource doesn't support specified Http Verb.",
            ),
            (
                Fault::NotImplemented,
                501,
                "NotImplemented",
                "The requested operation is not implemented on the specified resource.",
            ),
            (
                Fault::InvalidXmlDocument,
                400,
                "InvalidXmlDocument",
                "XML specified is not syntactically valid.",
            ),
            (
                Fault::InvalidQueryParameterValue,
                400,
                "InvalidQueryParameterValue",
                "Value for one of the query parameters specified in the request URI is invalid.",
            ),
            (
                Fault::InvalidHeaderValue,
                400,
                "InvalidHeaderValue",
                "The value for one of the HTTP headers is not in the correct format.",
            ),
            (
                Fault::CorsHeaderMissing,
                400,
                "InvalidHeaderValue",
                "A required CORS header is not present.",
            ),
            (
                Fault::InvalidUri,
                400,
                "InvalidUri",
                "The requested URI does not represent any resource on the server.",
            ),
            (
                Fault::RequestBodyTooLarge,
                413,
                "RequestBodyTooLarge",
                "The request body is too large and exceeds the maximum permissible limit.",
            ),
            (
                Fault::AuthenticationFailed,
                403,
                "AuthenticationFailed",
                "Server failed to authenticate the request. Make sure the value of Authorization header is formed correctly including the signature.",
            ),
            (
                Fault::InvalidAuthenticationInfo,
                401,
                "InvalidAuthenticationInfo",
                "Server failed to authenticate the request. Please refer to the information in the www-authenticate header.",
            ),
            (
                Fault::AuthorizationFailure,
                403,
                "AuthorizationFailure",
                "This request is not authorized to perform this operation.",
            ),
            (
                Fault::AuthorizationPermissionMismatch,
                403,
                "AuthorizationPermissionMismatch",
                "This request is not authorized to perform this operation using this permission.",
            ),
            (
                Fault::AuthorizationResourceTypeMismatch,
                403,
                "AuthorizationResourceTypeMismatch",
                "This request is not authorized to perform this operation using this resource type.",
            ),
            (
                Fault::AuthorizationServiceMismatch,
                403,
                "AuthorizationServiceMismatch",
                "This request is not authorized to perform this operation using this service.",
            ),
            (
                Fault::AuthorizationProtocolMismatch,
                403,
                "AuthorizationProtocolMismatch",
                "This request is not authorized to perform this operation using this protocol.",
            ),
            (
                address,
                403,
                "AuthorizationSourceIPMismatch",
                "This request is not authorized to perform this operation using this source IP 127.0.0.1.",
            ),
            (
                Fault::InsufficientAccountPermissions,
                403,
                "InsufficientAccountPermissions",
                "Write operations are not allowed.",
            ),
            (
                Fault::CorsPreflightFailure,
                403,
                "CorsPreflightFailure",
                "CORS not enabled or no matching rule found for this request.",
            ),
            (Fault::ServerBusy, 503, "ServerBusy", "The server is busy."),
            (
                Fault::AccountBusy,
                503,
                "ServerBusy",
                "Operations per second is over the account limit.",
            ),
            (
                Fault::OperationTimedOut,
                500,
                "OperationTimedOut",
                "Operation could not be completed within the specified time.",
            ),
            (
                Fault::InternalError,
                500,
                "InternalError",
                "The server encountered an internal error. Please retry the request.",
            ),
            (
                Fault::MethodNotUsingPost,
                400,
                "XMethodNotUsingPost",
                "The request uses X-HTTP-Method with an HTTP verb other than POST.",
            ),
            (
                Fault::MethodIncorrectValue,
                400,
                "XMethodIncorrectValue",
                "The specified X-HTTP-Method is invalid.",
            ),
            (
                Fault::MethodIncorrectCount,
                400,
                "XMethodIncorrectCount",
                "More than one X-HTTP-Method is specified.",
            ),
        ] {
            assert_eq!(
                (fault.status(), fault.code(), fault.to_string().as_str()),
                (status, code, text)
            );
        }
    }
}
