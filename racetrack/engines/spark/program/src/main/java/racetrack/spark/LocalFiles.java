package racetrack.spark;

import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * A file system for Hadoop that does not set permissions. Hadoop's own class needs a native library
 * for that, which is not on Maven Central. Without the library, it starts a `chmod` process for
 * each file, and each micro-batch writes several files.
 */
public final class LocalFiles extends LocalFileSystem {
  public LocalFiles() {
    super(new WithoutPermissions());
    // Checksums would be files of their own, which are renamed separately: after a kill between the
    // two renames, they would not match.
    setWriteChecksum(false);
    setVerifyChecksum(false);
  }

  private static final class WithoutPermissions extends RawLocalFileSystem {
    @Override
    public void setPermission(Path file, FsPermission permission) {
      // Keep the default permissions, with which this user can read and write the file.
    }
  }
}
