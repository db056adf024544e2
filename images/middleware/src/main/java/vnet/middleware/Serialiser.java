package vnet.middleware;

import vnet.middleware.node.Mmxu;

/** A serialiser: object to bytes and back. A new one is a class that implements this, and a line in known.json; each thread has its own. */
public interface Serialiser {
    byte[] write(Mmxu node) throws Exception;

    Mmxu read(byte[] bytes) throws Exception;

    /** Fails if it cannot represent the object, or reads an object that differs from the written one. */
    default void carries(String name, Mmxu node) {
        Mmxu found;
        try {
            found = read(write(node));
        } catch (Exception e) {
            throw new IllegalArgumentException(name + ": this serialiser cannot carry the object: " + e, e);
        }
        if (!node.equals(found)) {
            throw new IllegalArgumentException(name + ": this serialiser does not carry the object: what it reads is not what it wrote");
        }
    }
}
