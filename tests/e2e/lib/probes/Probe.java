// SPDX-License-Identifier: MIT
import java.net.ProxySelector;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;

/** Probe (METHOD URL BODY)...: see probe.py; an empty BODY is none. HttpClient as it comes, HTTP/2 included. */
public class Probe {
	static String quote(String s) {
		StringBuilder out = new StringBuilder("\"");
		for (char c : s.toCharArray()) {
			if (c == '"' || c == '\\') out.append('\\').append(c);
			else if (c < ' ' || c > '~') out.append(String.format("\\u%04x", (int) c));
			else out.append(c);
		}
		return out.append('"').toString();
	}

	public static void main(String[] args) {
		HttpClient client = HttpClient.newBuilder().proxy(ProxySelector.getDefault()).connectTimeout(Duration.ofSeconds(15)).build();
		for (int i = 0; i + 2 < args.length; i += 3) {
			HttpRequest request = HttpRequest.newBuilder(URI.create(args[i + 1])).timeout(Duration.ofSeconds(15))
				.method(args[i], args[i + 2].isEmpty() ? HttpRequest.BodyPublishers.noBody() : HttpRequest.BodyPublishers.ofString(args[i + 2]))
				.build();
			try {
				HttpResponse<String> got = client.send(request, HttpResponse.BodyHandlers.ofString());
				System.out.println("{\"status\":" + got.statusCode() + ",\"reason\":"
					+ got.headers().firstValue("x-netpawl-reason").map(Probe::quote).orElse("null") + ",\"len\":" + got.body().length()
					+ ",\"text\":" + quote(got.body()) + ",\"proto\":" + quote(got.version().toString()) + "}");
			} catch (Exception e) {
				System.out.println("{\"error\":" + quote(e.toString()) + "}");
			}
		}
		System.exit(0);
	}
}
