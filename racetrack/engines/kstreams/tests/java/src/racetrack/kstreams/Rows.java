package racetrack.kstreams;

import java.math.BigDecimal;
import java.util.HashMap;
import java.util.Map;
import org.apache.avro.LogicalTypes;
import org.apache.avro.Schema;
import org.apache.avro.Schema.Type;
import org.apache.avro.SchemaBuilder;

/** Rows of MySQL's tables, with schemas such as Debezium's. */
final class Rows {
  private static final Schema MONEY =
      Schema.createUnion(
          Schema.create(Type.NULL),
          LogicalTypes.decimal(12, 2).addToSchema(Schema.create(Type.BYTES)));

  static final Schema USER =
      SchemaBuilder.record("user").fields()
          .requiredLong("id").optionalString("email").optionalInt("is_vip")
          .optionalString("created_at").optionalLong("updated_at").endRecord();
  static final Schema ITEM =
      SchemaBuilder.record("item").fields()
          .requiredLong("id").optionalString("name").optionalString("category")
          .name("price").type(MONEY).noDefault()
          .optionalInt("inventory").optionalString("inventory_updated_at")
          .optionalString("created_at").optionalLong("updated_at").endRecord();
  static final Schema PURCHASE =
      SchemaBuilder.record("purchase").fields()
          .requiredLong("id").optionalLong("user_id").optionalLong("item_id").optionalInt("status")
          .optionalLong("quantity").name("purchase_price").type(MONEY).noDefault()
          .optionalInt("deleted").optionalString("created_at").optionalLong("updated_at")
          .endRecord();
  static final Schema AD =
      SchemaBuilder.record("ad").fields()
          .requiredString("ad_id").requiredString("campaign_id").endRecord();

  private Rows() {}

  static Map<String, Object> user(long id, String email) {
    Map<String, Object> row = new HashMap<>(Map.of("id", id, "is_vip", 0));
    row.put("email", email);
    return row;
  }

  static Map<String, Object> item(long id, String name) {
    return Map.of(
        "id", id, "name", name, "category", "widgets", "price", new BigDecimal("1.50"),
        "inventory", 7);
  }

  static Map<String, Object> purchase(long id, long user, long item, long quantity, String price) {
    return Map.of(
        "id", id, "user_id", user, "item_id", item, "status", 1, "quantity", quantity,
        "purchase_price", new BigDecimal(price), "deleted", 0);
  }

  static Schema key(Schema row) {
    Schema.Field first = row.getFields().get(0);
    return SchemaBuilder.record(row.getName() + "_key").fields()
        .name(first.name()).type(first.schema()).noDefault().endRecord();
  }

  static Schema envelope(Schema row) {
    return SchemaBuilder.record(row.getName() + "_envelope").fields()
        .name("before").type().nullable().record(row.getName() + "_before").fields().endRecord()
        .noDefault()
        .name("after").type(Schema.createUnion(Schema.create(Type.NULL), row)).noDefault()
        .endRecord();
  }
}
