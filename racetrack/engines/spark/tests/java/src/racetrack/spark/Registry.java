package racetrack.spark;

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
final class Registry implements AutoCloseable {
  private static final Schema MONEY =
      Schema.createUnion(
          Schema.create(Type.NULL),
          LogicalTypes.decimal(12, 2).addToSchema(Schema.create(Type.BYTES)));
  static final Schema AD =
      SchemaBuilder.record("ad").fields()
          .requiredString("ad_id").requiredString("campaign_id").endRecord();
  static final Schema USER =
      SchemaBuilder.record("user").fields().requiredLong("id").optionalString("email").endRecord();
  static final Schema ITEM =
      SchemaBuilder.record("item").fields()
          .requiredLong("id").optionalString("name").optionalString("category").endRecord();
  static final Schema PURCHASE =
      SchemaBuilder.record("purchase").fields()
          .requiredLong("id").optionalLong("user_id").optionalLong("item_id")
          .optionalLong("quantity").name("purchase_price").type(MONEY).noDefault().endRecord();

  private final HttpServer server;
  private final List<Schema> schemas = new ArrayList<>();

  Registry() throws IOException {
    server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
    server.createContext("/schemas/ids/", this::answer);
    server.start();
  }

  String url() {
    return "http://localhost:" + server.getAddress().getPort();
  }

  /** A row by its columns, in their order. */
  static GenericRecord row(Schema schema, Object... columns) {
    GenericRecord row = new GenericData.Record(schema);
    for (int at = 0; at < columns.length; at++) {
      boolean isMoney =
          columns[at] != null && schema.getFields().get(at).schema().equals(MONEY);
      row.put(at, isMoney ? new BigDecimal((String) columns[at]) : columns[at]);
    }
    return row;
  }

  byte[] key(GenericRecord row) throws IOException {
    Schema.Field first = row.getSchema().getFields().get(0);
    Schema schema =
        SchemaBuilder.record(row.getSchema().getName() + "_key").fields()
            .name(first.name()).type(first.schema()).noDefault().endRecord();
    return framed(row(schema, row.get(0)));
  }

  /** A change; null: there was no row, or is none. */
  byte[] change(Schema row, GenericRecord before, GenericRecord after) throws IOException {
    Schema any = Schema.createUnion(Schema.create(Type.NULL), row);
    Schema schema =
        SchemaBuilder.record(row.getName() + "_envelope").fields()
            .name("before").type(any).noDefault().name("after").type(any).noDefault().endRecord();
    return framed(row(schema, before, after));
  }

  private byte[] framed(GenericRecord record) throws IOException {
    Schema schema = record.getSchema();
    if (!schemas.contains(schema)) {
      schemas.add(schema);
    }
    GenericData data = new GenericData();
    data.addLogicalTypeConversion(new Conversions.DecimalConversion());
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    out.writeBytes(ByteBuffer.allocate(5).put((byte) 0).putInt(schemas.indexOf(schema)).array());
    var encoder = EncoderFactory.get().binaryEncoder(out, null);
    new GenericDatumWriter<GenericRecord>(schema, data).write(record, encoder);
    encoder.flush();
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
