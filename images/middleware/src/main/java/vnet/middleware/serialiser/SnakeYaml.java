package vnet.middleware.serialiser;

import java.nio.charset.StandardCharsets;
import org.yaml.snakeyaml.DumperOptions;
import org.yaml.snakeyaml.LoaderOptions;
import org.yaml.snakeyaml.Yaml;
import org.yaml.snakeyaml.constructor.Constructor;
import org.yaml.snakeyaml.nodes.Tag;
import org.yaml.snakeyaml.representer.Representer;
import vnet.middleware.Serialiser;
import vnet.middleware.node.Mmxu;

/** Serialises to YAML by SnakeYAML. */
public final class SnakeYaml implements Serialiser {
    private final Yaml yaml;

    public SnakeYaml() {
        Representer representer = new Representer(new DumperOptions());
        representer.addClassTag(Mmxu.class, Tag.MAP);
        yaml = new Yaml(new Constructor(Mmxu.class, new LoaderOptions()), representer);
    }

    @Override
    public byte[] write(Mmxu node) {
        return yaml.dump(node).getBytes(StandardCharsets.UTF_8);
    }

    @Override
    public Mmxu read(byte[] bytes) {
        return yaml.load(new String(bytes, StandardCharsets.UTF_8));
    }
}
