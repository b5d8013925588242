package racetrack.spark;

import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * Files on this machine. Without Hadoop's native library, which Maven Central does not have, Hadoop's
 * own class starts a `chmod` for each file, and each micro-batch writes several.
 */
public final class LocalFiles extends LocalFileSystem {
  public LocalFiles() {
    super(new WithoutPermissions());
    // They would be files of their own, renamed apart from what they are of: a kill may come between.
    setWriteChecksum(false);
    setVerifyChecksum(false);
  }

  private static final class WithoutPermissions extends RawLocalFileSystem {
    @Override
    public void setPermission(Path file, FsPermission permission) {
      // Whoever made it may read and write it.
    }
  }
}
