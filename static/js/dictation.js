// Inserts the text of a recording at the cursor. What could not be sent is kept until it is sent or cancelled.
(() => {
  const [form, panel, button] = ["composer", "dictation", "dictate"].map((id) => document.getElementById(id));
  if (!window.MediaRecorder || !navigator.mediaDevices) return;
  const { dataset } = panel;
  const part = (name) => panel.querySelector(`[data-${name}]`);
  const textarea = () => document.getElementById("message");
  let current, recording, request;

  function show(state, text) {
    const hadFocus = panel.contains(document.activeElement);
    dataset.state = state;
    button.setAttribute("aria-pressed", state === "recording");
    part("finish").hidden = state !== "recording";
    part("retry").hidden = state !== "failed" || !recording;
    part("status").textContent = text;
    // A button that disappears would take the focus along.
    if (hadFocus) part("cancel").focus();
  }

  function end(text) {
    current?.cancel?.();
    request?.abort();
    current = recording = request = undefined;
    show("done", text);
    textarea().focus();
  }

  function insert(text) {
    const field = textarea();
    const gap = /\S$/.test(field.value.slice(0, field.selectionStart)) ? " " : "";
    field.setRangeText(gap + text, field.selectionStart, field.selectionEnd, "end");
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }

  async function send() {
    if (recording.size > dataset.maxBytes) return show("failed", dataset.tooLarge);
    show("sending", dataset.transcribing);
    const { signal } = (request = new AbortController());
    const headers = { "Content-Type": recording.type, "X-CSRFToken": form.elements.csrfmiddlewaretoken.value };
    try {
      const response = await fetch(dataset.url, { method: "POST", body: recording, headers, signal });
      const isText = response.headers.get("Content-Type")?.startsWith("text/plain");
      const text = isText ? await response.text() : "";
      if (!response.ok || !isText) return show("failed", text || dataset.failed);
      if (text) insert(text);
      end(text ? dataset.inserted : dataset.nothing);
    } catch {
      if (!signal.aborted) show("failed", dataset.failed);
    }
  }

  async function record() {
    const attempt = (current = {});
    try {
      const started = await recordMicrophone(dataset.maxSeconds, (text) => (part("time").textContent = text));
      if (current !== attempt) return started.cancel();
      current = started;
      show("recording", dataset.recording);
      const taken = await started.done;
      if (current !== started) return;
      [current, recording] = [undefined, taken];
      await send();
    } catch (error) {
      current = undefined;
      show("failed", error.name === "NotAllowedError" ? dataset.noPermission : dataset.noMicrophone);
    }
  }

  // The end of a transcription would cancel a recording that began meanwhile, which would also replace a kept one.
  const begin = () => dataset.state === "sending" || (recording?.size <= dataset.maxBytes ? send() : record());
  button.addEventListener("click", () => (current ? current.stop?.() : begin()));
  part("finish").addEventListener("click", () => current?.stop());
  part("retry").addEventListener("click", send);
  part("cancel").addEventListener("click", () => end(dataset.cancelled));
  for (const name of ["input", "submit"]) {
    form.addEventListener(name, (event) => event.isTrusted && dataset.state === "done" && show("", ""));
  }
  button.hidden = false;
})();
