package vnet.middleware.serialiser;

import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** Returns the fields of a class, for libraries that write only values and not objects. */
final class Tree {
    private static final Map<Class<?>, List<Field>> KNOWN = new ConcurrentHashMap<>();

    private Tree() {}

    static List<Field> fields(Class<?> of) {
        return KNOWN.computeIfAbsent(of, Tree::read);
    }

    private static List<Field> read(Class<?> of) {
        List<Field> found = new ArrayList<>();
        for (Field field : of.getDeclaredFields()) {
            if (!Modifier.isStatic(field.getModifiers())) {
                found.add(field);
            }
        }
        return List.copyOf(found);
    }
}
