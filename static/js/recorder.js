// Records the microphone until it is stopped, at most for some seconds, and passes the elapsed time to `showTime`.
// `done` is the recording, null if it was cancelled.
async function recordMicrophone(maxSeconds, showTime) {
  const stream = await navigator.mediaDevices.getUserMedia({ audio: true });
  const recorder = new MediaRecorder(stream, { audioBitsPerSecond: 48_000 });
  const began = Date.now();
  const pieces = [];
  let isCancelled = false;

  // A microphone that is unplugged has stopped it already.
  const stop = () => recorder.state === "inactive" || recorder.stop();
  function tick() {
    const seconds = Math.floor((Date.now() - began) / 1000);
    showTime(`${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`);
    if (seconds >= maxSeconds) stop();
  }
  const timer = setInterval(tick, 500);
  const done = new Promise((resolve) => {
    recorder.ondataavailable = (event) => pieces.push(event.data);
    recorder.onstop = () => {
      clearInterval(timer);
      stream.getTracks().forEach((track) => track.stop());
      resolve(isCancelled ? null : new Blob(pieces, { type: recorder.mimeType.split(";")[0] }));
    };
  });
  recorder.start(1000);
  tick();
  const cancel = () => {
    isCancelled = true;
    stop();
  };
  return { done, stop, cancel };
}
