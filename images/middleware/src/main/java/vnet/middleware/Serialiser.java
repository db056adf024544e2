package vnet.middleware;

import vnet.middleware.node.Mmxu;

/** One serialiser: the object to bytes and back. A new one is a class that implements this and a line in known.json; each thread has its own. */
public interface Serialiser {
    byte[] write(Mmxu node) throws Exception;

    Mmxu read(byte[] bytes) throws Exception;
}
