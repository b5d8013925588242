package racetrack.debezium;

import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.data.Field;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaBuilder;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.transforms.Transformation;

/**
 * Keeps NULL as NULL: removes the default value from each nullable column in the schema of a row,
 * which a converter would otherwise write in place of NULL.
 *
 * <p>Only {@code before} and {@code after} of Debezium's envelope change; a primary key is never NULL.
 */
public final class KeepNulls<R extends ConnectRecord<R>> implements Transformation<R> {
    private static final List<String> ROWS = List.of("before", "after");
    // Debezium keeps one schema object per table until the table is altered.
    private static final int MAX_SCHEMAS = 1_000;
    private final Map<Schema, Schema> withoutDefaults = new IdentityHashMap<>();

    @Override
    public R apply(R record) {
        if (!(record.value() instanceof Struct value) || record.valueSchema().field("after") == null) {
            return record;
        }
        Schema schema = cached(record.valueSchema());
        if (schema == record.valueSchema()) {
            return record;
        }
        return record.newRecord(
                record.topic(), record.kafkaPartition(), record.keySchema(), record.key(),
                schema, copy(value, schema), record.timestamp());
    }

    @Override
    public ConfigDef config() {
        return new ConfigDef();
    }

    @Override
    public void configure(Map<String, ?> configs) {}

    @Override
    public void close() {
        withoutDefaults.clear();
    }

    private Schema cached(Schema schema) {
        Schema known = withoutDefaults.get(schema);
        if (known == null) {
            if (withoutDefaults.size() >= MAX_SCHEMAS) {
                withoutDefaults.clear();
            }
            known = envelope(schema);
            withoutDefaults.put(schema, known);
        }
        return known;
    }

    private Schema envelope(Schema schema) {
        Schema row = KeepNulls.row(schema.field("after").schema());
        return rebuilt(schema, field -> ROWS.contains(field.name()) ? row : field.schema());
    }

    private static Schema row(Schema schema) {
        return schema.type() == Schema.Type.STRUCT
                ? rebuilt(schema, field -> column(field.schema()))
                : schema;
    }

    private static Schema column(Schema schema) {
        if (!schema.isOptional() || schema.defaultValue() == null || !schema.type().isPrimitive()) {
            return schema;
        }
        return described(SchemaBuilder.type(schema.type()), schema).build();
    }

    private static Schema rebuilt(
            Schema schema, Function<Field, Schema> schemaOf) {
        if (schema.fields().stream().allMatch(field -> schemaOf.apply(field) == field.schema())) {
            return schema;
        }
        SchemaBuilder builder = described(SchemaBuilder.struct(), schema);
        schema.fields().forEach(field -> builder.field(field.name(), schemaOf.apply(field)));
        return builder.build();
    }

    private static SchemaBuilder described(SchemaBuilder builder, Schema schema) {
        if (schema.isOptional()) {
            builder.optional();
        }
        if (schema.parameters() != null) {
            builder.parameters(schema.parameters());
        }
        return builder.name(schema.name()).version(schema.version()).doc(schema.doc());
    }

    private static Struct copy(Struct from, Schema schema) {
        Struct to = new Struct(schema);
        for (Field field : schema.fields()) {
            Object value = from.getWithoutDefault(field.name());
            boolean isRow = value instanceof Struct row && row.schema() != field.schema();
            to.put(field, isRow ? copy((Struct) value, field.schema()) : value);
        }
        return to;
    }
}
