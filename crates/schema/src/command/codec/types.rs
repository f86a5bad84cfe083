//! CQL types in messages.

use std::sync::Arc;

use super::bytes::{Decoder, Encoder, tags};
use super::error::DecodeError;
use super::limits::{Limit, TYPE_LEVELS_MAX, TYPE_PARTS_MAX};
use helenus_types::types::{CqlType, Native, UserType};

tags!(native, Native, "native type", {
    1 = Native::Ascii,
    2 = Native::Bigint,
    3 = Native::Blob,
    4 = Native::Boolean,
    5 = Native::Counter,
    6 = Native::Date,
    7 = Native::Decimal,
    8 = Native::Double,
    9 = Native::Duration,
    10 = Native::Empty,
    11 = Native::Float,
    12 = Native::Inet,
    13 = Native::Int,
    14 = Native::Smallint,
    15 = Native::Text,
    16 = Native::Time,
    17 = Native::Timestamp,
    18 = Native::Timeuuid,
    19 = Native::Tinyint,
    20 = Native::Uuid,
    21 = Native::Varint,
});

/// How many parts a type has so far, and how deep the present one lies.
struct Size {
    parts: usize,
    level: usize,
}

impl Size {
    /// The part beside or below, or the bound that it breaks.
    fn next(&mut self) -> Result<(), (Limit, usize)> {
        self.parts += 1;
        for (limit, found) in [(TYPE_PARTS_MAX, self.parts), (TYPE_LEVELS_MAX, self.level)] {
            if found > limit.most {
                return Err((limit, found));
            }
        }
        Ok(())
    }
}

impl Encoder {
    pub(super) fn cql_type(&mut self, ty: &CqlType) {
        self.part(ty, &mut Size { parts: 0, level: 1 });
    }

    fn part(&mut self, ty: &CqlType, size: &mut Size) {
        if let Err((limit, found)) = size.next() {
            self.check(limit, found);
            return;
        }
        size.level += 1;
        match ty {
            CqlType::Native(native) => {
                self.u8(1);
                self.native(*native);
            }
            CqlType::Custom(class) => {
                self.u8(2);
                self.text(class);
            }
            CqlType::List(element) => {
                self.u8(3);
                self.part(element, size);
            }
            CqlType::Set(element) => {
                self.u8(4);
                self.part(element, size);
            }
            CqlType::Map(key, value) => {
                self.u8(5);
                self.part(key, size);
                self.part(value, size);
            }
            CqlType::Tuple(fields) => {
                self.u8(6);
                self.list(TYPE_PARTS_MAX, fields, |encoder, field| encoder.part(field, size));
            }
            CqlType::User(user) => {
                self.u8(7);
                self.text(&user.keyspace);
                self.text(&user.name);
                self.list(TYPE_PARTS_MAX, &user.fields, |encoder, (name, field)| {
                    encoder.text(name);
                    encoder.part(field, size);
                });
            }
            CqlType::Vector(element, length) => {
                self.u8(8);
                self.part(element, size);
                self.u32(*length);
            }
            CqlType::Frozen(inner) => {
                self.u8(9);
                self.part(inner, size);
            }
        }
        size.level -= 1;
    }
}

impl Decoder {
    pub(super) fn cql_type(&mut self) -> Result<CqlType, DecodeError> {
        self.part(&mut Size { parts: 0, level: 1 })
    }

    fn part(&mut self, size: &mut Size) -> Result<CqlType, DecodeError> {
        size.next().map_err(|(limit, found)| DecodeError::TooMany {
            items: limit.items,
            found,
            most: limit.most,
        })?;
        size.level += 1;
        let ty = match self.u8()? {
            1 => CqlType::Native(self.native()?),
            2 => CqlType::Custom(self.text()?.into()),
            3 => CqlType::List(Arc::new(self.part(size)?)),
            4 => CqlType::Set(Arc::new(self.part(size)?)),
            5 => {
                let key = Arc::new(self.part(size)?);
                CqlType::Map(key, Arc::new(self.part(size)?))
            }
            6 => CqlType::Tuple(self.list(TYPE_PARTS_MAX, |decoder| decoder.part(size))?.into()),
            7 => CqlType::User(Arc::new(UserType {
                keyspace: self.text()?,
                name: self.text()?,
                fields: self.list(TYPE_PARTS_MAX, |decoder| Ok((decoder.text()?, decoder.part(size)?)))?,
            })),
            8 => {
                let element = Arc::new(self.part(size)?);
                CqlType::Vector(element, self.u32()?)
            }
            9 => CqlType::Frozen(Arc::new(self.part(size)?)),
            found => return Err(DecodeError::Tag { of: "type", found }),
        };
        size.level -= 1;
        Ok(ty)
    }
}
