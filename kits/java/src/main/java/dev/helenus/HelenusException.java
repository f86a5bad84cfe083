package dev.helenus;

/** The server does not start, or refuses what it is asked. */
public final class HelenusException extends RuntimeException {
  private static final long serialVersionUID = 1;

  HelenusException(String message) {
    super(message);
  }
}
