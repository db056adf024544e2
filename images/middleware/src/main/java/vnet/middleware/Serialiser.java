package vnet.middleware;

import vnet.middleware.node.Mmxu;

/** Converts an object to bytes and back; each thread has its own. A new serialiser is a class that implements this interface, and a line in known.json. */
public interface Serialiser {
    byte[] write(Mmxu node) throws Exception;

    Mmxu read(byte[] bytes) throws Exception;

    /** Throws IllegalArgumentException if this serialiser cannot write or read `node`, or if the object that it reads differs from `node`. */
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
