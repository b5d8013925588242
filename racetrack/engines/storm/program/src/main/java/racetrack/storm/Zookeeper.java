package racetrack.storm;

import java.io.File;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import org.apache.storm.shade.org.apache.zookeeper.server.NIOServerCnxnFactory;
import org.apache.storm.shade.org.apache.zookeeper.server.ZooKeeperServer;

/**
 * The ZooKeeper of a local cluster, which only that cluster uses. It listens on the loopback
 * address only; the one that Storm would start listens on all addresses.
 */
final class Zookeeper {
  static final String HOST = "127.0.0.1";
  private static final int TICK_MS = 2_000;

  private Zookeeper() {}

  /** Starts ZooKeeper on a free port, and returns the port. */
  static int start() throws Exception {
    File folder = Files.createTempDirectory("zookeeper").toFile();
    NIOServerCnxnFactory factory = new NIOServerCnxnFactory();
    factory.configure(new InetSocketAddress(HOST, 0), 0);
    factory.startup(new ZooKeeperServer(folder, folder, TICK_MS));
    return factory.getLocalPort();
  }
}
