# SPDX-License-Identifier: MIT
"""A TLS handshake by Java, with what it trusts by itself."""
from lib.world import FAR

# A class file, for there is no compiler where Java only runs (javac -g:none --release 8):
#   public class Handshake { public static void main(String[] args) throws Exception {
#     javax.net.ssl.SSLSocketFactory factory = (javax.net.ssl.SSLSocketFactory) javax.net.ssl.SSLSocketFactory.getDefault();
#     ((javax.net.ssl.SSLSocket) factory.createSocket(new java.net.Socket(args[0], 443), "origin.test", 443, true)).startHandshake();
#     System.out.println(200); } }
HANDSHAKE = (
    "yv66vgAAADQAMQoAAgADBwAEDAAFAAYBABBqYXZhL2xhbmcvT2JqZWN0AQAGPGluaXQ+AQADKClWCgAIAAkHAAoMAAsADAEAHmphdmF4L25ldC9zc2wvU1"
    "NMU29ja2V0RmFjdG9yeQEACmdldERlZmF1bHQBABsoKUxqYXZheC9uZXQvU29ja2V0RmFjdG9yeTsHAA4BAA9qYXZhL25ldC9Tb2NrZXQKAA0AEAwABQAR"
    "AQAWKExqYXZhL2xhbmcvU3RyaW5nO0kpVggAEwEAC29yaWdpbi50ZXN0CgAIABUMABYAFwEADGNyZWF0ZVNvY2tldAEAOChMamF2YS9uZXQvU29ja2V0O0"
    "xqYXZhL2xhbmcvU3RyaW5nO0laKUxqYXZhL25ldC9Tb2NrZXQ7BwAZAQAXamF2YXgvbmV0L3NzbC9TU0xTb2NrZXQKABgAGwwAHAAGAQAOc3RhcnRIYW5k"
    "c2hha2UJAB4AHwcAIAwAIQAiAQAQamF2YS9sYW5nL1N5c3RlbQEAA291dAEAFUxqYXZhL2lvL1ByaW50U3RyZWFtOwoAJAAlBwAmDAAnACgBABNqYXZhL2"
    "lvL1ByaW50U3RyZWFtAQAHcHJpbnRsbgEABChJKVYHACoBAAlIYW5kc2hha2UBAARDb2RlAQAEbWFpbgEAFihbTGphdmEvbGFuZy9TdHJpbmc7KVYBAApF"
    "eGNlcHRpb25zBwAwAQATamF2YS9sYW5nL0V4Y2VwdGlvbgAhACkAAgAAAAAAAgABAAUABgABACsAAAARAAEAAQAAAAUqtwABsQAAAAAACQAsAC0AAgArAA"
    "AAOgAFAAIAAAAuuAAHwAAITCu7AA1ZKgMyEQG7twAPEhIRAbsEtgAUwAAYtgAasgAdEQDItgAjsQAAAAAALgAAAAQAAQAvAAA=")
JAVA = f'cd "$(mktemp -d)" && echo {HANDSHAKE} | base64 -d >Handshake.class && java -cp . Handshake {FAR[4]}; rm Handshake.class'
