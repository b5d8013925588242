package racetrack.upsert;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.math.BigDecimal;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.avro.Conversions;
import org.apache.avro.LogicalTypes;
import org.apache.avro.Schema;
import org.apache.avro.Schema.Type;
import org.apache.avro.SchemaBuilder;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.EncoderFactory;

/** A schema registry, and messages such as Debezium's that name its schemas. */
public final class Registry implements AutoCloseable {
  private static final Schema MONEY =
      Schema.createUnion(
          Schema.create(Type.NULL),
          LogicalTypes.decimal(12, 2).addToSchema(Schema.create(Type.BYTES)));
  private static final Schema AD =
      SchemaBuilder.record("ad").fields()
          .requiredString("ad_id").requiredString("campaign_id").endRecord();
  private static final Schema USER =
      SchemaBuilder.record("user").fields()
          .requiredLong("id").optionalString("email").optionalInt("is_vip")
          .optionalString("created_at").optionalLong("updated_at").endRecord();
  private static final Schema ITEM =
      SchemaBuilder.record("item").fields()
          .requiredLong("id").optionalString("name").optionalString("category")
          .name("price").type(MONEY).noDefault()
          .optionalInt("inventory").optionalString("inventory_updated_at")
          .optionalString("created_at").optionalLong("updated_at").endRecord();
  private static final Schema PURCHASE =
      SchemaBuilder.record("purchase").fields()
          .requiredLong("id").optionalLong("user_id").optionalLong("item_id")
          .optionalLong("quantity").name("purchase_price").type(MONEY).noDefault()
          .optionalInt("status").optionalInt("deleted")
          .optionalString("created_at").optionalLong("updated_at").endRecord();

  private final HttpServer server;
  private final List<Schema> schemas = new ArrayList<>();

  Registry() {
    try {
      server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
    } catch (IOException error) {
      throw new AssertionError(error);
    }
    server.createContext("/schemas/ids/", this::answer);
    server.start();
  }

  public String url() {
    return "http://localhost:" + server.getAddress().getPort();
  }

  public static GenericRecord ad(String id, String campaign) {
    return row(AD, id, campaign);
  }

  public static GenericRecord user(long id, String email) {
    return row(USER, id, email);
  }

  public static GenericRecord item(long id, String name, String category) {
    return row(ITEM, id, name, category, name == null ? null : new BigDecimal("1.50"));
  }

  public static GenericRecord purchase(
      long id, Long user, Long item, Long quantity, String price) {
    return row(PURCHASE, id, user, item, quantity, price == null ? null : new BigDecimal(price));
  }

  /** A row by its first columns, in their order. */
  private static GenericRecord row(Schema schema, Object... columns) {
    GenericRecord row = new GenericData.Record(schema);
    for (int at = 0; at < columns.length; at++) {
      row.put(at, columns[at]);
    }
    return row;
  }

  public byte[] key(GenericRecord row) {
    Schema.Field first = row.getSchema().getFields().get(0);
    Schema schema =
        SchemaBuilder.record(row.getSchema().getName() + "_key").fields()
            .name(first.name()).type(first.schema()).noDefault().endRecord();
    return framed(row(schema, row.get(0)));
  }

  /** A change; null: there was no row, or is none. */
  public byte[] change(GenericRecord before, GenericRecord after) {
    Schema row = (after == null ? before : after).getSchema();
    Schema any = Schema.createUnion(Schema.create(Type.NULL), row);
    Schema schema =
        SchemaBuilder.record(row.getName() + "_envelope").fields()
            .name("before").type(any).noDefault().name("after").type(any).noDefault().endRecord();
    return framed(row(schema, before, after));
  }

  private byte[] framed(GenericRecord record) {
    Schema schema = record.getSchema();
    if (!schemas.contains(schema)) {
      schemas.add(schema);
    }
    GenericData data = new GenericData();
    data.addLogicalTypeConversion(new Conversions.DecimalConversion());
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    out.writeBytes(ByteBuffer.allocate(5).put((byte) 0).putInt(schemas.indexOf(schema)).array());
    try {
      var encoder = EncoderFactory.get().binaryEncoder(out, null);
      new GenericDatumWriter<GenericRecord>(schema, data).write(record, encoder);
      encoder.flush();
    } catch (IOException error) {
      throw new AssertionError(error);
    }
    return out.toByteArray();
  }

  private void answer(HttpExchange exchange) throws IOException {
    String path = exchange.getRequestURI().getPath();
    int id = Integer.parseInt(path.substring(path.lastIndexOf('/') + 1));
    byte[] body =
        new ObjectMapper().writeValueAsBytes(Map.of("schema", schemas.get(id).toString()));
    exchange.sendResponseHeaders(200, body.length);
    exchange.getResponseBody().write(body);
    exchange.close();
  }

  @Override
  public void close() {
    server.stop(0);
  }
}
