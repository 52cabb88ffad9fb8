package governed.caller;

/** What is called by the libraries that call an interface of Java. */
public interface TagService {

    /** The tag of the call, or {@link Client#NONE}. */
    String tag();
}
