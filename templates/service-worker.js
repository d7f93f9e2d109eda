// Shows a page of its own when Cato cannot be reached. It keeps that page and its style sheets, and nothing else.
const VERSION = "{{ version }}";
const FILES = [
  {% for file in files %}"{{ file|escapejs }}",
  {% endfor %}
];

self.addEventListener("install", (event) => {
  event.waitUntil(caches.open(VERSION).then((cache) => cache.addAll(FILES)));
  self.skipWaiting();
});

self.addEventListener("activate", (event) => {
  async function start() {
    for (const name of await caches.keys()) {
      if (name !== VERSION) await caches.delete(name);
    }
    // Pages are requested while this script is started.
    await self.registration.navigationPreload?.enable();
  }
  event.waitUntil(start());
});

async function page(event) {
  try {
    return (await event.preloadResponse) ?? (await fetch(event.request));
  } catch {
    return caches.match(FILES[0]);
  }
}

self.addEventListener("fetch", (event) => {
  const { request } = event;
  if (request.method !== "GET") return;
  if (request.mode === "navigate") {
    event.respondWith(page(event));
  } else if (FILES.includes(new URL(request.url).pathname)) {
    event.respondWith(fetch(request).catch(() => caches.match(request)));
  }
});
