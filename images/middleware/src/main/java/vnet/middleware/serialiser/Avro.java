package vnet.middleware.serialiser;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import org.apache.avro.Schema;
import org.apache.avro.io.BinaryDecoder;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.io.EncoderFactory;
import org.apache.avro.reflect.ReflectData;
import org.apache.avro.reflect.ReflectDatumReader;
import org.apache.avro.reflect.ReflectDatumWriter;
import vnet.middleware.Serialiser;
import vnet.middleware.node.Mmxu;

/** Serialises to Avro's binary format by Avro's own library and reflection; both sides have the schema. */
public final class Avro implements Serialiser {
    private final ReflectDatumWriter<Mmxu> writer;
    private final ReflectDatumReader<Mmxu> reader;
    private BinaryEncoder encoder;
    private BinaryDecoder decoder;

    public Avro() {
        System.setProperty("org.apache.avro.SERIALIZABLE_PACKAGES", Mmxu.class.getPackageName());
        Schema schema = ReflectData.get().getSchema(Mmxu.class);
        writer = new ReflectDatumWriter<>(schema);
        reader = new ReflectDatumReader<>(schema);
    }

    @Override
    public byte[] write(Mmxu node) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        encoder = EncoderFactory.get().binaryEncoder(bytes, encoder);
        writer.write(node, encoder);
        encoder.flush();
        return bytes.toByteArray();
    }

    @Override
    public Mmxu read(byte[] bytes) throws IOException {
        decoder = DecoderFactory.get().binaryDecoder(bytes, decoder);
        return reader.read(null, decoder);
    }
}
