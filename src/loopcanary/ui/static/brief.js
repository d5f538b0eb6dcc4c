// What another page says, in brief: its heavier questions do not hold up the page that shows it.

const ROWS = 4;

export async function fillBriefs(root) {
  for (const place of root.querySelectorAll("[data-brief]")) {
    try {
      const answer = await fetch(place.dataset.brief, { headers: { Accept: "text/html" } });
      if (!answer.ok) continue;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const found = page.getElementById(place.dataset.part);
      if (!found) continue;
      [...found.querySelectorAll("tbody tr")].slice(ROWS).forEach((row) => row.remove());
      place.replaceChildren(...found.childNodes);
      place.closest("section").hidden = false;
    } catch {
      // The server has ended; the link to the page is there all the same.
    }
  }
}
