package governed.caller;

/** The echo's side for ServiceComb, which ends with the process. */
record ServiceCombEcho(int port) implements Echo.Listener {

    ServiceCombEcho {
        ServiceComb.Engine.start(Echo.address(port), true);
    }

    @Override
    public void close() {}
}
