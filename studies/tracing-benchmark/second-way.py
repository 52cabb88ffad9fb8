#!/usr/bin/env python3
"""Counts what a backend holds by a second way: not by its own counter or index statistics, which the study asks, but span by span.

    second-way.py jaeger http://127.0.0.1:16686 SERVICE         all traces of the service, by Jaeger's query API
    second-way.py zipkin http://127.0.0.1:9411 SERVICE          the same by Zipkin's
    second-way.py elasticsearch http://127.0.0.1:9200 PATTERN   every document of the indices, fetched and counted one by one

Prints the number of spans (documents) and of distinct ids among them. For stores of some hundred thousand spans at most: it fetches all.
"""

import json
import sys
import urllib.parse
import urllib.request


def get(url, body=None):
    request = urllib.request.Request(url, json.dumps(body).encode() if body else None, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=300) as answer:
        return json.load(answer)


def jaeger(url, service):
    query = urllib.parse.urlencode({"service": service, "limit": 1_000_000, "lookback": "1h"})
    for trace in get(f"{url}/api/traces?{query}")["data"]:
        for span in trace["spans"]:
            yield trace["traceID"], span["spanID"]


def zipkin(url, service):
    query = urllib.parse.urlencode({"serviceName": service, "limit": 1_000_000, "lookback": 3_600_000})
    for trace in get(f"{url}/api/v2/traces?{query}"):
        for span in trace:
            yield span["traceId"], span["id"]


def elasticsearch(url, pattern):
    page = get(f"{url}/{pattern}/_search?scroll=1m&size=5000", {"_source": False, "sort": ["_doc"]})
    while page["hits"]["hits"]:
        for hit in page["hits"]["hits"]:
            yield hit["_index"], hit["_id"]
        page = get(f"{url}/_search/scroll", {"scroll": "1m", "scroll_id": page["_scroll_id"]})


def main():
    ways = {"jaeger": jaeger, "zipkin": zipkin, "elasticsearch": elasticsearch}
    if len(sys.argv) != 4 or sys.argv[1] not in ways:
        sys.exit(__doc__)
    total, distinct = 0, set()
    for one in ways[sys.argv[1]](sys.argv[2].rstrip("/"), sys.argv[3]):
        total += 1
        distinct.add(one)
    print(f"{total} {len(distinct)}")


if __name__ == "__main__":
    main()
