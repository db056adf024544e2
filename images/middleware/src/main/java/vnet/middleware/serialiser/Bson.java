package vnet.middleware.serialiser;

import java.nio.ByteBuffer;
import org.bson.BsonBinaryReader;
import org.bson.BsonBinaryWriter;
import org.bson.codecs.Codec;
import org.bson.codecs.DecoderContext;
import org.bson.codecs.EncoderContext;
import org.bson.codecs.ValueCodecProvider;
import org.bson.codecs.configuration.CodecRegistries;
import org.bson.codecs.pojo.PojoCodecProvider;
import org.bson.io.BasicOutputBuffer;
import vnet.middleware.Serialiser;
import vnet.middleware.node.Mmxu;

/** Serialises to BSON by MongoDB's library. */
public final class Bson implements Serialiser {
    private final Codec<Mmxu> codec = CodecRegistries.fromProviders(
                    new ValueCodecProvider(), PojoCodecProvider.builder().automatic(true).build())
            .get(Mmxu.class);

    @Override
    public byte[] write(Mmxu node) {
        BasicOutputBuffer out = new BasicOutputBuffer();
        codec.encode(new BsonBinaryWriter(out), node, EncoderContext.builder().build());
        return out.toByteArray();
    }

    @Override
    public Mmxu read(byte[] bytes) {
        return codec.decode(new BsonBinaryReader(ByteBuffer.wrap(bytes)), DecoderContext.builder().build());
    }
}
