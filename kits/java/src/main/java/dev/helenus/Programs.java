package dev.helenus;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.Locale;

/** Where the server's program is. Nothing is downloaded. */
public final class Programs {
  private Programs() {}

  /** The argument, else HELENUS_BIN, else the copy that a jar in the class path carries, else {@code helenus} in PATH. */
  public static Path find(Path program) {
    String variable = System.getenv("HELENUS_BIN");
    if (program == null && variable != null && !variable.isEmpty()) {
      program = Path.of(variable);
    }
    if (program != null) {
      if (!isProgram(program)) {
        throw new HelenusException(program + " is not a program");
      }
      return program;
    }
    try (InputStream carried = Programs.class.getResourceAsStream(resource())) {
      if (carried != null) {
        return extract(carried.readAllBytes(), Path.of(System.getProperty("user.home"), ".cache"));
      }
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
    for (String folder : String.valueOf(System.getenv("PATH")).split(File.pathSeparator)) {
      Path candidate = Path.of(folder, name());
      if (!folder.isEmpty() && isProgram(candidate)) {
        return candidate;
      }
    }
    throw new HelenusException(
        "there is no helenus in PATH: set HELENUS_BIN to the program; in a clone `cargo build --release` makes target/release/helenus");
  }

  /**
   * Writes a program that a jar carries into a cache directory, under the sum of its bytes, and returns its path. A rename puts it there
   * whole, so that processes that start at the same time never run half of it.
   */
  public static Path extract(byte[] program, Path cache) throws IOException {
    Path folder = cache.resolve("helenus").resolve(sum(program));
    Path path = folder.resolve(name());
    if (Files.isRegularFile(path) && Files.size(path) == program.length) {
      return path;
    }
    Files.createDirectories(folder);
    Path part = Files.createTempFile(folder, "part-", "");
    try {
      Files.write(part, program);
      if (!part.toFile().setExecutable(true, true)) {
        throw new IOException(part + " cannot be made executable");
      }
      Files.move(part, path, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
    } finally {
      Files.deleteIfExists(part);
    }
    return path;
  }

  /** The place of a carried program in its jar: {@code /dev/helenus/linux-amd64/helenus}. */
  static String resource() {
    String system = System.getProperty("os.name").toLowerCase(Locale.ROOT).split(" ")[0];
    return "/dev/helenus/" + system + "-" + System.getProperty("os.arch") + "/" + name();
  }

  private static boolean isProgram(Path path) {
    return Files.isRegularFile(path) && Files.isExecutable(path);
  }

  private static String name() {
    return File.separatorChar == '\\' ? "helenus.exe" : "helenus";
  }

  private static String sum(byte[] bytes) {
    try {
      return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(bytes));
    } catch (NoSuchAlgorithmException error) {
      throw new IllegalStateException("every Java has SHA-256", error);
    }
  }
}
