// Copies the address of a page, or a stall in one of its forms.

export function offerSharing(root) {
  const said = root.getElementById("copied");
  const say = (words) => { if (said) said.textContent = words; };
  const copy = async (text, words) => {
    try {
      await navigator.clipboard.writeText(await text);
      say(words);
    } catch {
      say("The browser did not allow that.");
    }
  };
  for (const button of root.querySelectorAll("[data-copy-link]")) {
    button.hidden = false;
    button.addEventListener("click", () => copy(location.href, "The link is copied; it works on this machine."));
  }
  for (const button of root.querySelectorAll("[data-copy]")) {
    button.hidden = false;
    button.addEventListener("click", () => {
      const text = fetch(button.dataset.copy).then((answer) => {
        if (!answer.ok) throw new Error(answer.status);
        return answer.text();
      });
      copy(text, "Copied.");
    });
  }
}
